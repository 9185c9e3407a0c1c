"""Writes `version_8.sql`: what a server of version 8 of the store has left when it is killed.

Run once, with the last commit whose server wrote that version, in a folder that has it:

    git worktree add ../version-8 4116d22
    cd ../version-8 && PYTHONPATH=. python THIS_FILE version_8.sql

It has what `write_version_6.py` writes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.store.older import write_version_5 as first
from tests.store.older import write_version_6 as before


def main(target: Path) -> None:
    """Write SQL to a file."""
    first.drive = before.drive
    first.main(target)
    text = target.read_text(encoding="utf-8").replace("write_version_5.py", "write_version_8.py", 1)
    target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
