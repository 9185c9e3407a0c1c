"""Writes `version_5.sql`: what a server of version 5 of the store has left when it is killed.

Run once, with the last commit whose server wrote that version, in a folder that has it:

    git worktree add ../version-5 5a802dd
    cd ../version-5 && PYTHONPATH=. python THIS_FILE version_5.sql

As `write_version_3.py` does it, which says why. It has what a migration could lose: objects with areas
and without, some replaced, retracted or expired, subscriptions of both kinds with windows and without,
devices heard of at other times.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import nearcast
from nearcast import Boolean, Bounds, Circle, GeoObject, Last, Polygon, TopK

AREA = "14.0,35.0,15.0,36.0"
SERVE = "from cli import main; main()"
BEGIN_MS = 1_000_000
HOUR_MS = 3_600_000
WORDS = (["sushi", "茶"], ["tea é"], ['quo"te', "back\\slash"], ["a", "b", "c"], ["café", "ice"])
RANGES = (
    (Circle(123.4, (14.1 + 0.2, 35.3)), False),
    (Circle(0.1 + 0.2), True),
    (Bounds(14.1, 35.1, 14.1 + 1 / 3, 35.3), False),
    (
        Polygon(
            ((14.1, 35.1), (14.2, 35.1), (14.1, 35.2)),
            (((14.11, 35.11), (14.12, 35.11), (14.11, 35.12)),),
        ),
        False,
    ),
)


WINDOWS = (None, Last(seconds=600), Last(count=1_000))


async def objects(publisher: nearcast.Publisher) -> None:
    """Publish, replace and retract, and let some expire."""
    posts = [
        GeoObject(
            WORDS[i % len(WORDS)],
            None if i % 3 == 0 else 14 + i / 41,
            None if i % 3 == 0 else 35 + i / 43,
            ttl_s=50_000 if i % 5 else 1,
            payload=bytes(range(i)),
            key=f"key é {i}" if i % 2 else "",
            area=Bounds(14 + i / 41, 35 + i / 43, 14.01 + i / 41, 35.01 + i / 43) if i % 3 == 0 else None,
        )
        for i in range(1, 31)
    ]
    ids = await publisher.publish(posts)
    await publisher.retract(*ids[1::6])
    await publisher.publish([GeoObject(["tea"], 14.9, 35.1, ttl_s=60_000, key="key é 3")])


async def drive(target: str) -> None:
    """Make the server write."""
    async with nearcast.connect(target) as client:
        await client.advance_clock(BEGIN_MS)
        await objects(client.publisher())
        async with client.fleet() as fleet:
            for i in range(12):
                await client.advance_clock(BEGIN_MS + i)
                device = await fleet.attach(f"device {i:02d} é", lon=14.05 + i / 20, lat=35.5)
                words = WORDS[i % len(WORDS)]
                where, moving = RANGES[i % len(RANGES)]
                top_k = await device.subscribe(TopK(words, 1 + i, 0.1 + i / 13, window=WINDOWS[i % 3]))
                await device.subscribe(Boolean(words, where, moving=moving, window=WINDOWS[i % 3]))
                await device.subscribe(Boolean("sushi AND NOT tea OR ice", where, moving=moving))
                if i % 3 == 0:
                    await top_k.unsubscribe()
            await client.advance_clock(BEGIN_MS + 5 * HOUR_MS)
            await client.publisher().publish([GeoObject(["late"], 14.5, 35.5, ttl_s=9_000)])


def dumped(path: Path) -> str:
    """Return a store as SQL."""
    database = sqlite3.connect(path)
    lines = ["-- Written by write_version_5.py, which says what it is."]
    for name in ("application_id", "user_version"):
        (number,) = database.execute(f"PRAGMA {name}").fetchone()
        lines.append(f"PRAGMA {name}={number};")
    return "\n".join([*lines, *database.iterdump(), ""])


def main(target: Path) -> None:
    """Write SQL to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        arguments = ["serve", "--area", AREA, "--port", "0", "--store", str(path), "--virtual-time"]
        server = subprocess.Popen(
            [sys.executable, "-c", SERVE, *arguments], stdout=subprocess.PIPE, text=True
        )
        try:
            asyncio.run(drive(server.stdout.readline().split()[-1]))
        finally:
            server.kill()
            server.wait()
        target.write_text(dumped(path), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
