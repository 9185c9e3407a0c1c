"""The page of the live map in a browser without a window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

PAGE = "map on "
"""Start of the first line of `nearcast map`."""

_LIMIT_MS = 120_000
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def program() -> str:
    """Return the path of a browser.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        raise RuntimeError("needs a browser: apt-get install chromium, or Chrome")
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """Run a browser. Raises RuntimeError if there is none."""
    path = program()
    with sync_playwright() as tools:
        # A container's root has no sandbox; the page is our own.
        yield tools.chromium.launch(executable_path=path, args=["--no-sandbox"])


def opened(started: Browser, address: str, scheme: str = "light") -> Page:
    """Open the page in a window of 1280 x 720."""
    context = started.new_context(viewport={"width": 1280, "height": 720}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(address)
    return page


def wait_for(page: Page, condition: str) -> None:
    """Wait until an expression of the page is true: the page's policy forbids Playwright's own wait."""
    page.evaluate(
        f"""async () => {{
            const end = performance.now() + {_LIMIT_MS};
            while (!({condition})) {{
                if (performance.now() > end) throw new Error("not in time");
                await new Promise((done) => setTimeout(done, 50));
            }}
        }}"""
    )


def picture(page: Page, path: Path) -> None:
    """Write what the page shows to a PNG file."""
    page.screenshot(path=path)
