"""Run a program that the system kills when the process that has started it is gone.

    python tied.py PID PROGRAM [ARGUMENT ...]

PID is the process that starts it. This is a program of its own, and does not run between a fork and an
exec, where code must not allocate. It needs Linux; elsewhere the program outlives the other process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent, then become the program."""
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):
            return  # it has ended meanwhile
    os.execv(command[0], command)  # noqa: S606 - of the caller


if __name__ == "__main__":
    main()
