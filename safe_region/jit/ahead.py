"""Kernels compiled before they are called, in processes of their own: as many as there are cores.

numba compiles under one lock a process. What it makes is a file of the cache for each kernel and an index
beside it, which two processes must not write at once: so a kernel is compiled by one process, and only
one process at a time has others compile.
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

from safe_region.jit.cache import CACHE_FOLDER
from safe_region.jit.dispatchers import Missing, noted
from safe_region.jit.worker import KEPT

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Report = Callable[[int, int], None]
"""Is told how many kernels are compiled, of how many that were missing."""

_log = logging.getLogger(__name__)

_WORKER = "import sys; sys.path[:] = sys.argv[1:]; from safe_region.jit.worker import main; main()"


def compile_ahead(run: Callable[[], object], report: Report = lambda _done, _total: None) -> int:
    """Have all kernels ready that a run calls; return how many there were not yet on this machine.

    Parameters
    ----------
    run
        Calls each kernel as it will be called later, with little to do. It is called up to three times,
        with kernels that are missing as plain Python.
    report
        Is told how far it is, if anything is missing.

    Raises
    ------
    KeyboardInterrupt
        If the processes that compile were interrupted.
    """
    missing = _missing(run)
    if not missing:
        return 0
    with _turn():
        missing = _missing(run)  # others may have compiled them while this one waited
        _Compilation(missing, report).run()
    run()
    return len(missing)


def _missing(run: Callable[[], object]) -> list[Missing]:
    with noted() as missing:
        run()
    return list(missing)


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Wait until no other process is compiling, where that can be told."""
    with contextlib.ExitStack() as stack:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a folder that cannot be written keeps nothing either
                CACHE_FOLDER.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context((CACHE_FOLDER / "lock").open("w"))
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Compilation:
    """Kernels that are being compiled.

    Functions of one file share what they call, so a process compiles those of one file while there are
    any, then those of a file that nobody has begun, and only then helps another.
    """

    def __init__(self, missing: list[Missing], report: Report) -> None:
        self._report = report
        self._total = len(missing)
        self._done = 0
        self._files: dict[str, list[Missing]] = {}
        # Most of the work is with what functions pass on, so what has wide arguments comes first.
        for one in sorted(missing, key=lambda one: len(str(one.signature)), reverse=True):
            self._files.setdefault(one.module, []).append(one)
        self._started: set[str] = set()
        self._lock = threading.Lock()
        self._interrupted = False

    def run(self) -> None:
        """Compile all, in processes."""
        if not self._total:
            return
        self._report(0, self._total)
        count = min(_core_count(), self._total)
        with ThreadPoolExecutor(count) as threads:
            for future in [threads.submit(self._work) for _ in range(count)]:
                future.result()
        if self._interrupted:
            raise KeyboardInterrupt

    def _work(self) -> None:
        """Let one process compile what is left, one kernel at a time."""
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
        """Take a kernel of the same file, else of one not begun, else of the one with most left."""
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
        """Leave the rest to whoever calls it: nothing can be kept, or the process has ended."""
        with self._lock:
            self._files.clear()
            if answer:
                _log.warning("compiled kernels cannot be kept in %s", CACHE_FOLDER)
                return
            status = process.wait()
            self._interrupted |= status == -signal.SIGINT
            _log.warning("a process that compiled kernels has ended with status %s", status)


def _core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
