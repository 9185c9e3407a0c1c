"""Run a porter: `python -m server.porter`, with its settings as JSON on standard input."""

from __future__ import annotations

import asyncio
import json
import signal
import sys

from server.loops import loop_factory
from server.porter.process import run


def main() -> None:
    """Read the settings, carry calls until the server has gone."""
    # The server decides when it ends: a Ctrl-C or SIGTERM to the whole group is for the server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    settings = json.loads(sys.stdin.readline())
    tls = settings["tls"] and (settings["tls"][0].encode(), settings["tls"][1].encode())
    options = [(name, value) for name, value in settings["options"]]
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run(settings["socket"], settings["address"], options, tls))


if __name__ == "__main__":
    main()
