"""Measure the live map in a browser: `python -m bench.map.speed [DEVICES OBJECTS]`, 2,000 and 10,000.

A server, a gateway, devices that walk about and a browser without a window share the machine. The script
prints as JSON: the time to the first paint and to the first points, in milliseconds since the navigation
started; points of a frame, or that it shows density; frames a second while the mouse drags the map, which
MapLibre then draws again, without a graphics card; and frames a second of a recorded run of the same size
that plays while the map is at rest: the live page draws only when something has changed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Page

from bench.map.page import PAGE, browser, opened, wait_for
from bench.map.population import AREA
from bench.map.run_file import recorded

_SERVING = "serving on "
"""Start of the first line of `nearcast serve`."""

_SHOWN_S = 8.0
_DRAG_S = 8.0
_STEPS_PER_S = 100
_MIDDLE = (470, 400)
_SWING_PX = 150
_ROWS_MAX = 4_000, 15_000
"""Devices and objects beyond which the page shows density."""

_DRAWN = "Number(document.getElementById('points').dataset.drawn) > 0"
_DENSE = "document.getElementById('points').dataset.density === 'true'"


def main(devices: int, objects: int) -> None:
    """Measure, and print the figures."""
    with ExitStack() as stack:
        area = ",".join(map(str, AREA))
        server = _line(stack, "cli", "serve", f"--area={area}", "--store=:memory:", "--port=0")
        server = server.removeprefix(_SERVING)
        _line(stack, "bench.map.population", server, str(devices), str(objects))
        run = Path(stack.enter_context(TemporaryDirectory())) / "run.ncmap"
        run.write_bytes(recorded(devices, objects))
        line = _line(stack, "cli", "map", str(run), "--server", server)
        address = line.removeprefix(PAGE).partition("#")[0]
        started = stack.enter_context(browser())
        page = opened(started, address)
        is_dense = devices > _ROWS_MAX[0] or objects > _ROWS_MAX[1]
        wait_for(page, _DENSE if is_dense else _DRAWN)
        points_ms = page.evaluate("performance.now()")
        time.sleep(2.0)
        figures = {"devices": devices, "objects": objects, "points_ms": points_ms, **_figures(page)}
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")


def _figures(page: Page) -> dict[str, Any]:
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    return {
        "first_paint_ms": page.evaluate(paint),
        "points_drawn": int(page.evaluate("document.getElementById('points').dataset.drawn")),
        "is_density": page.evaluate(_DENSE),
        "frames_per_s_dragged": _rate(page, lambda: _drag(page)),
        "frames_per_s_playing": _played(page),
    }


def _played(page: Page) -> float:
    """Return the frames a second of the recorded run while it plays."""
    page.click("#zoom-all")
    page.click("#recorded")
    page.select_option("#speed", "1")
    page.click("#play")
    return _rate(page, lambda: time.sleep(_SHOWN_S))


def _rate(page: Page, act: Callable[[], None]) -> float:
    """Return the frames a second that the page draws meanwhile."""
    before, began = _frames(page), time.monotonic()
    act()
    return round((_frames(page) - before) / (time.monotonic() - began), 1)


def _drag(page: Page) -> None:
    """Drag the map back and forth."""
    x, y = _MIDDLE
    page.mouse.move(x, y)
    page.mouse.down()
    end = time.monotonic() + _DRAG_S
    step = 0
    while time.monotonic() < end:
        offset = abs(step % (2 * _SWING_PX) - _SWING_PX) - _SWING_PX // 2
        page.mouse.move(x + offset, y + offset / 2)
        step += 3
        time.sleep(1.0 / _STEPS_PER_S)
    page.mouse.up()


def _frames(page: Page) -> int:
    return int(page.evaluate("document.getElementById('points').dataset.frames"))


def _line(stack: ExitStack, module: str, *arguments: str) -> str:
    """Start a program of this project, which ends with the stack; return its first line."""
    command = [sys.executable, "-m", module, *arguments]
    process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))  # noqa: S603 - ours
    stack.callback(process.terminate)
    if process.stdout is None:
        raise RuntimeError("the program has no output")
    return process.stdout.readline().strip()


if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:3] or ("2000", "10000")))
