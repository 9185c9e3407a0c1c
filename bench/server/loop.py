"""Run all measurements on one event loop: gRPC's poller keeps notifying the first loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    return _runner().run(coroutine)


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)
