"""Cancellation: of a task, or only of what it awaits."""

from __future__ import annotations

import asyncio


def is_cancelled() -> bool:
    """Return whether the current task was cancelled, which it may not ignore.

    If not, a CancelledError that it gets comes from what it awaits: a call of a connection that was
    closed, or a future of the app.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
