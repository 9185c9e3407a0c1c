"""Writes the generated pages of docs/reference: `python -m docs.generators` (`make reference`)."""

from __future__ import annotations

from pathlib import Path

from docs.generators import errors, limits, metrics, protocol

FOLDER = Path(__file__).resolve().parents[1] / "reference"
PAGES = {
    "protocol.md": protocol.page,
    "errors.md": errors.page,
    "limits.md": limits.page,
    "metrics.md": metrics.page,
}


def main() -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page())


if __name__ == "__main__":
    main()
