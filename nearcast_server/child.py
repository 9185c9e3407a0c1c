"""The process of a server: `nearcast_server.server_process` starts it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any


def main() -> int:
    """Serve until standard input ends."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC's core would log errors that are reported
    given = json.loads(sys.stdin.readline())
    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    try:
        return _served(given)
    except ModuleNotFoundError as error:
        _respond(missing=error.name)
        return 1


def _served(given: dict[str, Any]) -> int:
    from nearcast_server.errors import StartError  # noqa: PLC0415
    from nearcast_server.starting import FAILURES, settings_of  # noqa: PLC0415
    from server.main import serve  # noqa: PLC0415
    from server.monitoring.logs import begin_logging  # noqa: PLC0415

    try:
        settings = settings_of(given)
        begin_logging(settings.log_level, settings.log_format)
        serve(settings, lambda server: _respond(port=server.port))
    except (StartError, *FAILURES) as error:
        _respond(error=str(error))
        return 1
    return 0


def _stop_at_end_of_input() -> None:
    os.read(
        sys.stdin.fileno(), 1
    )  # a thread in `sys.stdin.read` would disturb the end of the interpreter
    os.kill(os.getpid(), signal.SIGTERM)


def _respond(**response: Any) -> None:  # noqa: ANN401
    print(json.dumps(response), flush=True)  # noqa: T201 - for the process that started this one


if __name__ == "__main__":
    sys.exit(main())
