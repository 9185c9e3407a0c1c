"""Writes `version_3.sql`: what a server of version 3 of the store has left when it is killed.

Run once, with the last commit whose server wrote that version, in a folder that has it:

    git worktree add ../version-3 b16c954
    cd ../version-3 && PYTHONPATH=. python THIS_FILE version_3.sql

The server is that commit's own, driven over the network by its SDK. What it wrote is kept as SQL: the
tables as SQLite keeps them, every value exactly, floats too; each run gives the same bytes. It has what
a migration could lose: numbers that no short decimal is, words that JSON escapes, both region modes,
devices heard of at other times, what was replaced, retracted, ended and has expired, totals that went up
and down.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
from itertools import cycle
from pathlib import Path

import nearcast
from nearcast import GeoObject, RegionMode, Similarity, TopK

AREA = "14.0,35.0,15.0,36.0"
SERVE = "from nearcast.cli import main; main()"
BEGIN_MS = 1_000_000
HOUR_MS = 3_600_000
ALPHAS = (0.1 + 0.2, 1 / 3, 0.001, 0.999, 0.5, 0.7 - 1e-16, 2**-9 + 2**-61, 0.1)
WORDS = (["sushi", "茶"], ["tea é"], ['quo"te', "back\\slash"], ["a", "b", "c"], ["café", "ice"])
EACH = 5
"""Subscriptions of a device, one of which ends."""


async def objects(publisher: nearcast.Publisher) -> None:
    """Publish, replace and retract, and let some expire."""
    posts = [
        GeoObject(
            WORDS[i % len(WORDS)],
            14 + i / 41,
            35 + i / 43,
            ttl_s=50_000 if i % 5 else 1,
            payload=bytes(range(i)),
            key=f"key é {i}" if i % 2 else "",
        )
        for i in range(1, 31)
    ]
    ids = await publisher.publish(posts)
    await publisher.retract(*ids[1::6])
    await publisher.publish([GeoObject(["tea"], 14.9, 35.1, ttl_s=60_000, key="key é 3")])


async def subscriptions(device: nearcast.Device, specs: list[TopK], ended: int) -> None:
    """Ask for all of them, then end one."""
    asked = [await device.subscribe(spec) for spec in specs]
    await asked[ended].unsubscribe()


async def drive(target: str) -> None:
    """Make the server write."""
    kinds = cycle([(similarity, region) for similarity in Similarity for region in RegionMode])
    specs = [
        TopK(WORDS[i % len(WORDS)], 1 + 7 * i % 100, ALPHAS[i % len(ALPHAS)], *next(kinds))
        for i in range(60)
    ]
    async with nearcast.connect(target) as client:
        await client.advance_clock(BEGIN_MS)
        await objects(client.publisher())
        async with client.fleet() as fleet:
            devices = []
            for i in range(12):
                await client.advance_clock(BEGIN_MS + i)
                device = await fleet.attach(f"device {i:02d} é", lon=14.05 + i / 20, lat=35.5)
                await subscriptions(device, specs[EACH * i : EACH * (i + 1)], i % EACH)
                devices.append(device)
            await client.advance_clock(BEGIN_MS + 2 * HOUR_MS)
            for device in devices[::2]:
                await device.detach()
            await client.sync()
            await client.publisher().publish([GeoObject(["late"], 14.5, 35.5, ttl_s=9_000)])
            await client.advance_clock(BEGIN_MS + 5 * HOUR_MS)


def dumped(path: Path) -> str:
    """Return a store as SQL."""
    database = sqlite3.connect(path)
    lines = ["-- Written by write_version_3.py, which says what it is."]
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
