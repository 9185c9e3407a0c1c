"""The log is read as SQLite reads it: the same commits are valid, whatever has happened to it."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from server.store import log_frames

COMMITS = 25


@pytest.fixture(scope="module", params=[512, 4096, 65536])
def killed(request, tmp_path_factory):
    """A database of a page size whose log has commits of one row each, of one to some pages."""
    path = tmp_path_factory.mktemp("log") / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"PRAGMA page_size={request.param}")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=OFF")
        database.execute("CREATE TABLE rows (content)")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for number in range(COMMITS):
            database.execute("INSERT INTO rows VALUES (?)", (bytes(1 + number * 90),))
        copy = path.with_name("killed.db")
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    return copy


def seen_by_sqlite(database, log, folder):
    path = folder / "trial.db"
    shutil.copy(database, path)
    Path(f"{path}-shm").unlink(missing_ok=True)
    Path(f"{path}-wal").write_bytes(log)
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM rows").fetchone()[0]


def test_a_log_that_is_whole(killed):
    log = Path(f"{killed}-wal")
    found = log_frames.examine(str(log))
    size = log.stat().st_size
    assert found == log_frames.LogState(size, size, COMMITS, 0, 0, "")


def test_the_same_commits_are_valid_as_for_sqlite(killed, tmp_path):
    whole = Path(f"{killed}-wal").read_bytes()
    rng = random.Random(len(whole))
    damaged = tmp_path / "damaged-wal"
    counts = set()
    for _ in range(60):
        log = bytearray(whole)
        place = rng.randrange(len(log))
        how = rng.randrange(3)
        if how == 0:
            log[place] ^= 1 << rng.randrange(8)
        elif how == 1:
            del log[place:]
        else:
            log[place : place + 512] = bytes(len(log[place : place + 512]))
        damaged.write_bytes(log)
        found = log_frames.examine(str(damaged))
        assert found.commit_count == seen_by_sqlite(killed, bytes(log), tmp_path), (how, place)
        if how == 1:
            assert not found.damage
        counts.add(found.commit_count)
        if not found.damage and found.end_bytes:
            log_frames.cut(str(damaged), found.end_bytes)
            again = log_frames.examine(str(damaged))
            assert again == log_frames.LogState(
                found.end_bytes, found.end_bytes, found.commit_count, 0, 0, ""
            )
    assert len(counts) > 8


def test_commits_behind_a_damaged_one_are_counted(killed, tmp_path):
    whole = bytearray(Path(f"{killed}-wal").read_bytes())
    page = int.from_bytes(whole[8:12], "big")
    whole[32 + 24 + page // 2] ^= 1  # in the first frame
    damaged = tmp_path / "damaged-wal"
    damaged.write_bytes(whole)
    found = log_frames.examine(str(damaged))
    assert found.damage == "frame 1 does not match its checksum"
    assert found.lost_commit_count == COMMITS
    assert found.lost_frame_count == (len(whole) - 32) // (24 + page)


def test_files_that_are_no_log(tmp_path):
    assert log_frames.examine(str(tmp_path / "absent")) == log_frames.NOTHING
    other = tmp_path / "other"
    for content, damage in (
        (b"", ""),
        (b"x" * 32, ""),
        (b"x" * 33, "its header does not match its checksum"),
    ):
        other.write_bytes(content)
        assert log_frames.examine(str(other)).damage == damage
