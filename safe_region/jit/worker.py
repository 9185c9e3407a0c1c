"""Run a process that compiles kernels named on standard input, and respond when each is in the cache."""

from __future__ import annotations

import gc
import importlib
import pickle
import signal
import sys

from safe_region.jit.dispatchers import Kernel, Missing

KEPT = b"+"
NOT_KEPT = b"-"


def main() -> None:
    """Compile the requested kernels until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends at once, without a traceback
    gc.disable()  # there is little garbage, and scanning numba's objects takes a tenth of the time
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    while True:
        try:
            wanted: Missing = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own process
        except EOFError:
            return
        found: Kernel = getattr(importlib.import_module(wanted.module), wanted.name)
        found.compile(wanted.signature)
        answers.write(KEPT if found.is_kept else NOT_KEPT)
        answers.flush()
