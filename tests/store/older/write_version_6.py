"""Writes `version_6.sql`: what a server of version 6 of the store has left when it is killed.

Run once, with the last commit whose server wrote that version, in a folder that has it:

    git worktree add ../version-6 4460980
    cd ../version-6 && PYTHONPATH=. python THIS_FILE version_6.sql

It has what `write_version_5.py` writes, and a table of weights.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nearcast
from safe_region.idf import IdfTable
from tests.store.older import write_version_5 as before

_drive = before.drive


async def drive(target: str) -> None:
    """Make the server write."""
    await _drive(target)
    async with nearcast.connect(target) as client:
        await client.set_idf(IdfTable({"sushi": 0.1 + 0.2, "茶": 2.5}))


def main(target: Path) -> None:
    """Write SQL to a file."""
    before.drive = drive
    before.main(target)
    text = target.read_text(encoding="utf-8").replace("write_version_5.py", "write_version_6.py", 1)
    target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
