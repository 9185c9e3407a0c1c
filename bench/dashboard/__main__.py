"""Run a demo, record its metrics, draw the dashboard's panels: `python -m bench.dashboard OUT [flags]`.

The flags are those of the demo. In the middle of the demo, a frame of `nearcast top` is drawn, too.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from bench.dashboard.panels import draw
from bench.dashboard.recording import recorded

_EVERY_S = 1.0
_WATCH = "watch it: nearcast top --server "
_TOP_AFTER_S = 8.0
"""Seconds after the server of the demo has started; devices have attached by then."""
_TOP_FRAMES = 20
"""Frames of a second each, before the picture is drawn."""


def main(out: Path, flags: list[str]) -> int:
    """Run the demo and draw the pictures; return the exit status of the demo."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "cli", "demo", f"--metrics-port={port}", f"--out={out / 'demo'}"]
    out.mkdir(parents=True, exist_ok=True)
    with (
        recorded(f"http://127.0.0.1:{port}/metrics", _EVERY_S) as recording,
        subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True) as demo,  # noqa: S603 - our own program
    ):
        for line in demo.stdout or ():
            sys.stdout.write(line)
            if line.startswith(_WATCH):
                address = line.removeprefix(_WATCH).strip()
                threading.Thread(target=_picture_top, args=(address, out), daemon=True).start()
        status = demo.wait()
    draw(recording, out / "dashboard.png")
    sys.stdout.write(f"{out / 'dashboard.png'}   {out / 'top.svg'}   {len(recording)} scrapes\n")
    return status


def _picture_top(address: str, out: Path) -> None:
    time.sleep(_TOP_AFTER_S)
    command = [
        sys.executable,
        "-m",
        "cli",
        "top",
        f"--server={address}",
        f"--frames={_TOP_FRAMES}",
        f"--svg={out / 'top.svg'}",
    ]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # noqa: S603 - our own program


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
