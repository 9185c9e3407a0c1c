"""`nearcast serve` as a process beside a feed that has everything wrong that a feed can have."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

import nearcast
from tests.cli.test_serve import Process
from tests.support.bad_files import CHEAP, FORGED, PRIVATE, row, write_rows

pytestmark = pytest.mark.processes

_AREA = "--area=12,55,12.2,55.1"
_PATIENCE_S = 120.0


def a_source(folder: Path) -> int:
    """Fill a folder with bad files between two good ones; return how many are bad."""
    folder.mkdir()
    write_rows(folder / "a.parquet", [row(1)])
    for make in CHEAP:
        make(folder / f"b-{make.__name__}.parquet")
    (folder / f"c\n{FORGED}.parquet").write_bytes(b"x")
    write_rows(folder / "x", [row(3)])
    (folder / "x").rename(os.fsdecode(os.fsencode(folder) + b"/d\xff.parquet"))
    write_rows(folder / "e.parquet", [row(2)])
    return len(CHEAP) + 2


async def _status(process: Process, objects: int) -> nearcast.ServerStatus:
    """Return what there is, when there are so many objects."""
    async with asyncio.timeout(_PATIENCE_S), nearcast.connect(process.target) as client:
        while (status := await client.status()).gauges["objects"] < objects:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return status


def test_bad_files_are_set_aside_and_the_server_serves(tmp_path: Path) -> None:
    source = tmp_path / "in"
    bad = a_source(source)
    options = (_AREA, "--port=0", "--create", f"--store={tmp_path / 's.db'}", f"--source={source}")
    process = Process(*options)
    status = asyncio.run(_status(process, 2))
    assert status.counters["source_unreadable"] == bad
    assert status.counters["source_refused"] == 0
    assert status.gauges["bridge_failing.SOURCE"] == 0
    assert process.signal(signal.SIGTERM) == 0
    lines = process.output.splitlines()
    assert len([line for line in lines if " is set aside as " in line]) == bad
    assert not [line for line in lines if line.startswith(FORGED) or PRIVATE in line]
    assert len(list(source.glob("*.refused"))) == bad
    # The next start finds nothing of it any more, and goes on.
    write_rows(source / "f.parquet", [row(4)])
    process = Process(*options)
    assert asyncio.run(_status(process, 3)).counters["source_unreadable"] == 0
    assert process.signal(signal.SIGTERM) == 0
