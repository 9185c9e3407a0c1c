"""Run a demo and take pictures of the live map beside it: `python -m bench.map OUT [flags]`.

The flags are those of the demo. `map.png` shows the demo while it runs, with one device chosen, and
`map-dark.png` the same in dark colours; `map-run.png` shows the recorded run afterwards.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Error as PlaywrightError

from bench.map.page import PAGE, browser, opened, picture, program, wait_for
from simulator.tables import read_table

_WATCH = "watch it: nearcast top --server "
_AFTER_S = 12.0
"""Seconds from the start of the demo's server to the pictures: devices have attached by then."""
_SHOWN_S = 12.0
"""How long a page is open before its picture is taken, so that its charts have lines."""
_RESULT = "document.querySelectorAll('.results tr.result').length > 2"


def main(out: Path, flags: list[str]) -> int:
    """Run the demo and take the pictures; return the exit status of the demo, or 1 without a browser."""
    try:
        program()
    except RuntimeError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    folder = out / "demo"
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "cli", "demo", f"--out={folder}", *flags]
    picturing = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:  # noqa: S603 - our own program
        for line in demo.stdout or ():
            sys.stdout.write(line)
            if line.startswith(_WATCH):
                server = line.removeprefix(_WATCH).strip()
                picturing = threading.Thread(target=_picture_live, args=(server, folder, out))
                picturing.start()
        status = demo.wait()
    if picturing is not None:
        picturing.join()
    _picture_run(folder, out)
    sys.stdout.write(
        "   ".join(str(out / f"{name}.png") for name in ("map", "map-dark", "map-run")) + "\n"
    )
    return status


def _picture_live(server: str, folder: Path, out: Path) -> None:
    try:
        _picture_pages(server, folder, out)
    except PlaywrightError:
        sys.stderr.write("no picture of the live map: the demo was over too soon; use more --seconds\n")


def _picture_pages(server: str, folder: Path, out: Path) -> None:
    time.sleep(_AFTER_S)
    device_id = _chosen(folder)
    with _page(folder, "--server", server) as address, browser() as started:
        for name, scheme in (("map", "light"), ("map-dark", "dark")):
            page = opened(started, f"{address}#device={device_id}", scheme)
            wait_for(page, _RESULT)
            time.sleep(_SHOWN_S)
            picture(page, out / f"{name}.png")
            page.close()


def _picture_run(folder: Path, out: Path) -> None:
    with _page(folder) as address, browser() as started:
        page = opened(started, f"{address}#run=60&device={_chosen(folder)}")
        wait_for(page, _RESULT)
        time.sleep(1.0)
        picture(page, out / "map-run.png")


def _chosen(folder: Path) -> str:
    """Return the device with a small moving top-k subscription for which distance counts most."""
    rows = read_table(folder, "subscriptions").to_pylist()
    found = [
        (row["alpha"], row["device_id"])
        for row in rows
        if row["kind"] == "top_k" and row["place"] is None and 3 <= row["k"] <= 5  # noqa: PLR2004
    ]
    return str(max(found)[1])


@contextmanager
def _page(folder: Path, *flags: str) -> Iterator[str]:
    """Run `nearcast map` with a simulation; yield the address of its page."""
    command = [sys.executable, "-m", "cli", "map", str(folder), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own program
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield line.removeprefix(PAGE).partition("#")[0]
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
