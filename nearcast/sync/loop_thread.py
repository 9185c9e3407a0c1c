"""An event loop in a thread of its own, and calls from other threads that wait for its coroutines."""

from __future__ import annotations

import asyncio
import atexit
import math
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from typing import ParamSpec, TypeVar

from nearcast.errors import ClosedError, invalid
from nearcast.protocol.shapes import number

_Result = TypeVar("_Result")
_Parameters = ParamSpec("_Parameters")

_SLICE_S = 1.0
"""Longest wait without a look at signals. Python does not notice one that arrives just before it waits,
or in another thread, before the wait ends."""

_ENDED_MAX = 16
"""Event loops that have ended and are still open."""


def checked_timeout_s(timeout_s: float | None) -> float | None:
    """Validate a time limit, and return it.

    Raises
    ------
    RefusedError
        If it is neither None nor a number of seconds above 0.
    """
    limit = "a number of seconds above 0, or None for no limit"
    if timeout_s is not None and not number(timeout_s, "timeout_s", limit) > 0.0:
        raise invalid("timeout_s", timeout_s, limit)
    return timeout_s


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that is closed some time after its end.

    gRPC has one queue of events for all loops of a process, and any of them hands out what is due. It
    raises an error in the thread of another loop if the loop of an event has been closed.
    """

    def close(self) -> None:
        """End the loop; close the one that ended longest ago if there are many."""
        _ended.append(self)
        if len(_ended) > _ENDED_MAX:
            _ended.popleft().close_now()

    def close_now(self) -> None:
        """Close the loop."""
        super().close()


_ended: deque[_Loop] = deque()


@atexit.register
def _close_ended() -> None:
    while _ended:
        _ended.popleft().close_now()


class LoopThread:
    """Runs asynchronous functions on an event loop in another thread.

    The functions are called there too. A coroutine that was created in the caller's thread would be lost,
    with a warning, if the user pressed Ctrl-C before it was handed over.

    Parameters
    ----------
    timeout_s
        Time limit of `run`; None for no limit.
    """

    def __init__(self, timeout_s: float | None = None) -> None:
        self.timeout_s = timeout_s
        self._runner = asyncio.Runner(loop_factory=_Loop)
        self._loop = self._runner.get_loop()
        self._stopping = asyncio.Event()
        self._is_closed = False
        # A generator that is collected during `_submit` calls it again.
        self._lock = threading.RLock()
        self._thread = threading.Thread(target=self._serve, name="nearcast", daemon=True)
        self._thread.start()

    def run(
        self,
        function: Callable[_Parameters, Awaitable[_Result]],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Result:
        """Run an asynchronous function; return its result, or raise its error.

        If the time is over, or the user presses Ctrl-C, it is cancelled.

        Raises
        ------
        TimeoutError
            If it takes longer than `timeout_s`.
        ClosedError
            If the loop has been closed, or is closed meanwhile.
        """
        return _awaited(self._submit(lambda: function(*args, **kwargs)), self.timeout_s)

    def call(self, function: Callable[[], _Result]) -> _Result:
        """Call a function in the loop's thread, or in this thread if the loop has been closed.

        There is no time limit: the function must not wait.
        """

        async def called() -> _Result:
            return function()

        try:
            return _awaited(self._submit(called), None)
        except ClosedError:
            if not self._is_closed:  # the error is the function's own
                raise
        self._thread.join()
        return function()

    def end(self, function: Callable[[], Awaitable[None]]) -> None:
        """Run a function that ends something. A closed loop has ended everything."""
        with suppress(ClosedError):
            self.run(function)

    def iterate(
        self, source: AsyncGenerator[_Result, None], timeout_s: float | None
    ) -> Iterator[_Result]:
        """Yield the items of an asynchronous generator, until no item comes for `timeout_s`."""
        return self._items(source, checked_timeout_s(timeout_s))

    def close(self, last: Callable[[], Awaitable[None]]) -> None:
        """Run a last function, and end the thread. Waiting calls raise `ClosedError`.

        Only the first call does anything.
        """
        with self._lock:
            try:
                done = self._submit(last)
            except ClosedError:
                return
            self._is_closed = True
        try:
            done.result()
        finally:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def _serve(self) -> None:
        with self._runner:  # cancels at the end what is still running
            self._runner.run(self._stopping.wait())

    def _submit(
        self, function: Callable[[], Awaitable[_Result]], *, is_awaited: bool = True
    ) -> Future[_Result]:
        """Start an asynchronous function on the loop.

        Raises
        ------
        ClosedError
            If the loop has been closed, or this is a fork of the process that started it.
        RuntimeError
            If the caller waits and is the loop's own thread: it would wait for itself.
        """
        result: Future[_Result] = Future()
        with self._lock:
            if self._is_closed or not self._thread.is_alive():
                raise ClosedError("the client is closed")
            if is_awaited and threading.current_thread() is self._thread:
                raise RuntimeError("a function that the client calls cannot call the client")
            self._loop.call_soon_threadsafe(_start, self._loop, function, result)
        return result

    def _items(self, source: AsyncGenerator[_Result, None], timeout_s: float | None) -> Iterator[_Result]:
        async def following() -> _Result:
            return await anext(source)

        try:
            while True:
                yield _awaited(self._submit(following), timeout_s)
        except (StopAsyncIteration, TimeoutError, ClosedError):
            return
        finally:
            # The garbage collector may call this, in any thread.
            with suppress(ClosedError):
                self._submit(source.aclose, is_awaited=False)


def _start(
    loop: asyncio.AbstractEventLoop, function: Callable[[], Awaitable[_Result]], result: Future[_Result]
) -> None:
    """Run a function as a task of this thread's loop; who cancels the result cancels the task."""

    async def called() -> _Result:
        return await function()

    def finish(task: asyncio.Task[_Result]) -> None:
        error = CancelledError() if task.cancelled() else task.exception()
        if not result.set_running_or_notify_cancel():
            return  # the caller no longer waits
        if error is None:
            result.set_result(task.result())
        else:
            result.set_exception(error)

    def stop(result: Future[_Result]) -> None:
        if result.cancelled():
            loop.call_soon_threadsafe(task.cancel)

    task = loop.create_task(called())
    task.add_done_callback(finish)
    result.add_done_callback(stop)


def _awaited(future: Future[_Result], timeout_s: float | None) -> _Result:
    """Wait for a result; cancel its coroutine if the caller no longer waits."""
    end_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
    try:
        while not future.done() and (left_s := end_s - time.monotonic()) > 0.0:
            wait((future,), min(left_s, _SLICE_S))
        if future.done() or not future.cancel():
            return future.result()
    except CancelledError:
        raise ClosedError("the client was closed during the call") from None
    except BaseException:  # KeyboardInterrupt, or the error of the coroutine
        future.cancel()
        raise
    raise TimeoutError(f"the call took longer than {timeout_s:g} s")
