"""What a test waits for that does not end: printed after some minutes, for the log of a run."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STUCK_S = 240.0
"""Far longer than any test takes on two busy cores. It decides nothing: the test goes on."""

_VALUE_CHARS = 300


@contextmanager
def reported(name: str, after_s: float = STUCK_S) -> Iterator[None]:
    """Print where all threads and tasks are, if the block takes long.

    Parameters
    ----------
    name
        Of the test.
    after_s
        After this time.
    """
    timer = threading.Timer(after_s, lambda: print(report(name), file=sys.__stderr__, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def report(name: str) -> str:
    """Return where the threads and the tasks of this process are, with the values of tests' frames."""
    lines = [f"{name} has not ended."]
    for number, frame in sys._current_frames().items():  # noqa: SLF001 - as `faulthandler` does
        if number != threading.get_ident():
            lines += [f"thread {number}", *traceback.format_stack(frame)[-4:]]
    for one in gc.get_objects():
        if issubclass(type(one), asyncio.Task) and not one.done():  # a weak proxy has no class any more
            lines += [f"task {one.get_name()}", *_frames_of(one.get_coro())]
    return "\n".join(lines)


def _frames_of(coroutine: Any) -> Iterator[str]:
    """Yield the frames of a coroutine, and of what it awaits."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is not None:
            yield from _described(frame)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)


def _described(frame: FrameType) -> Iterator[str]:
    path = frame.f_code.co_filename
    yield f"  {path}:{frame.f_lineno} {frame.f_code.co_name}"
    if "/tests/" in path:
        for name, value in frame.f_locals.items():
            yield f"      {name} = {_shown(value)}"


def _shown(value: object) -> str:
    try:
        return repr(value)[:_VALUE_CHARS]
    except Exception as error:  # noqa: BLE001 - of whatever object
        return f"no repr: {error!r}"
