"""Compile kernels before they are called, in as many processes as there are cores.

numba compiles under one lock per process. It writes a cache file for each kernel and an index beside it,
which two processes must not write at once. So one process compiles a kernel, and only one process at a
time lets others compile.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryFile

from safe_region.jit.cache import CACHE_FOLDER
from safe_region.jit.dispatchers import Missing, noted
from safe_region.jit.worker import KEPT

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Report = Callable[[int, int], None]
"""Called with the number of compiled kernels and the number of those that were missing."""

_log = logging.getLogger(__name__)

_NOT_KEPT = f"compiled kernels cannot be kept in {CACHE_FOLDER}"
_WORKER = "import sys; sys.path[:] = sys.argv[1:]; from safe_region.jit.worker import main; main()"


class NotKeptError(Exception):
    """Kernels cannot be compiled into the cache."""


def require_cache() -> None:
    """Verify that the folder of compiled kernels is writable, as numba does.

    Raises
    ------
    NotKeptError
        If it is not. numba would keep the kernels beside their sources if it can.
    """
    try:
        CACHE_FOLDER.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=CACHE_FOLDER).close()
    except OSError as error:
        raise NotKeptError(f"{_NOT_KEPT}: {error.strerror}") from None


def compile_ahead(
    run: Callable[[], object],
    report: Report = lambda _done, _total: None,
    *,
    must_keep: bool = False,
) -> int:
    """Prepare all kernels that a run calls; return the number that this machine did not have yet.

    Parameters
    ----------
    run
        Calls each kernel as it will be called later, with little to do. It is called up to three times,
        with missing kernels as plain Python.
    report
        Called with the progress, if any kernel is missing.
    must_keep
        Whether kernels that are not in the cache afterwards are an error. Otherwise the run compiles them
        for itself, and the log has a warning.

    Raises
    ------
    KeyboardInterrupt
        If the processes that compile were interrupted.
    NotKeptError
        If kernels must be kept and are not.
    """
    missing = _missing(run)
    if not missing:
        return 0
    with _turn():
        missing = _missing(run)  # other processes may have compiled them during the wait
        failure = _Compilation(missing, report).run()
    if failure:
        if must_keep:
            raise NotKeptError(failure)
        _log.warning("%s", failure)
    run()
    return len(missing)


def _missing(run: Callable[[], object]) -> list[Missing]:
    with noted() as missing:
        run()
    return list(missing)


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Wait until no other process is compiling, where the platform has file locks."""
    with contextlib.ExitStack() as stack:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a folder that is not writable has no cache either
                CACHE_FOLDER.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context((CACHE_FOLDER / "lock").open("w"))
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Compilation:
    """Kernels that are being compiled.

    Functions of one file share the functions that they call. So a process compiles the functions of one
    file while there are any, then those of a file that no process has started, and only then it helps
    with another file.
    """

    def __init__(self, missing: list[Missing], report: Report) -> None:
        self._report = report
        self._total = len(missing)
        self._done = 0
        self._files: dict[str, list[Missing]] = {}
        # Most of the work is in passing arguments on, so functions with wide arguments come first.
        for one in sorted(missing, key=lambda one: len(str(one.signature)), reverse=True):
            self._files.setdefault(one.module, []).append(one)
        self._started: set[str] = set()
        self._lock = threading.Lock()
        self._interrupted = False
        self._failure = ""

    def run(self) -> str:
        """Compile all kernels, in processes; return why they could not all be kept, else nothing."""
        if not self._total:
            return ""
        self._report(0, self._total)
        count = min(_core_count(), self._total)
        with ThreadPoolExecutor(count) as threads:
            for future in [threads.submit(self._work) for _ in range(count)]:
                future.result()
        if self._interrupted:
            raise KeyboardInterrupt
        return self._failure

    def _work(self) -> None:
        """Let one process compile the remaining kernels, one at a time."""
        command = [sys.executable, "-c", _WORKER, *sys.path]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:  # noqa: S603 - this very program
            if process.stdin is None or process.stdout is None:
                return
            module = ""
            while (one := self._next(module)) is not None:
                module = one.module
                with contextlib.suppress(BrokenPipeError):
                    pickle.dump(one, process.stdin)
                    process.stdin.flush()
                answer = process.stdout.read(len(KEPT))
                if answer != KEPT:
                    self._give_up(process, answer)
                    return
                with self._lock:
                    self._done += 1
                    self._report(self._done, self._total)

    def _next(self, module: str) -> Missing | None:
        """Pop a kernel of the same file, else of a file not started, else of the file with most left."""
        with self._lock:
            left = [name for name, kernels in self._files.items() if kernels]
            if module not in left:
                unstarted = [name for name in left if name not in self._started]
                module = (
                    unstarted[0]
                    if unstarted
                    else max(left, key=lambda name: len(self._files[name]), default="")
                )
            self._started.add(module)
            return self._files[module].pop(0) if module else None

    def _give_up(self, process: subprocess.Popen[bytes], answer: bytes) -> None:
        """Leave the other kernels to their callers.

        Either the cache is not writable, or the process has ended.
        """
        with self._lock:
            self._files.clear()
            if answer:
                self._failure = _NOT_KEPT
                return
            status = process.wait()
            self._interrupted |= status == -signal.SIGINT
            self._failure = f"a process that compiled kernels ended with status {status}"


def _core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
