"""The log stays short, the file gives back what it does not need, and a full disk is a passing thing."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from server.store import SqliteStore, check, facts, upkeep
from server.store.mutations import DeleteObject, PutObject, SetLastSeen
from server.store.sqlite import _GIVEN_BACK, _LAST_SEEN_STEP_MS
from tests.store.conftest import FRAME, a_subscription, an_object, quiet
from tests.support.stored import ids_of

pytestmark = pytest.mark.usefixtures("without_fsync")

ROOT = Path(__file__).resolve().parents[2]
LATE_MS = 10**9
LOG_BYTES = 200_000


@pytest.fixture
def short_log(monkeypatch):
    monkeypatch.setattr(upkeep, "LOG_BYTES", LOG_BYTES)


def write(store, first, count, payload=2_000):
    """Commit objects one by one; return the longest log there was."""
    longest = 0
    for number in range(first, first + count):
        store.commit([PutObject(an_object(number, LATE_MS, bytes(payload)))], number)
        longest = max(longest, store.upkeep.log_bytes())
        store.upkeep.wait()
    return longest


@pytest.mark.usefixtures("short_log")
def test_the_log_is_copied_and_restarted(path):
    store = SqliteStore(path, FRAME)
    longest = write(store, 1, 500)
    assert LOG_BYTES <= longest < 1.5 * LOG_BYTES
    assert path.stat().st_size > 500 * 2_000 - 1.5 * LOG_BYTES, "what left the log is in the file"
    store.close()
    assert check(path, quiet) == []


@pytest.mark.usefixtures("short_log")
def test_a_reader_keeps_the_log_until_it_has_ended(path):
    store = SqliteStore(path, FRAME)
    write(store, 1, 10)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    before = reader.execute("SELECT count(*) FROM objects").fetchone()
    grown = write(store, 11, 500)
    assert grown > 5 * LOG_BYTES
    assert reader.execute("SELECT count(*) FROM objects").fetchone() == before
    reader.close()
    write(store, 511, 100)
    assert store.upkeep.log_bytes() < 1.5 * LOG_BYTES
    store.close()
    assert len(ids_of(SqliteStore(path, FRAME).recover())) == 610


@pytest.mark.usefixtures("short_log")
def test_a_failed_checkpoint_is_logged_and_tried_again(path, caplog):
    store = SqliteStore(path, FRAME)
    database = store.upkeep.database
    store.upkeep.database = sqlite3.connect(":memory:")
    store.upkeep.database.close()
    with caplog.at_level(logging.WARNING):
        grown = write(store, 1, 200)
    assert grown > 1.5 * LOG_BYTES
    assert "checkpoint failed" in caplog.text
    store.upkeep.database = database
    write(store, 201, 200)
    assert store.upkeep.log_bytes() < 1.5 * LOG_BYTES
    store.close()
    assert check(path, quiet) == []


def test_the_file_shrinks_by_a_few_pages_a_commit(path):
    store = SqliteStore(path, FRAME)
    numbers = range(1, 2_001)
    store.commit([PutObject(an_object(number, payload=bytes(4_000))) for number in numbers], 1)
    store.commit([a_subscription("d")], 1)

    def pages():
        return store.database.execute("PRAGMA page_count").fetchone()[0]

    full = pages()
    store.commit([DeleteObject(number) for number in numbers], 1)
    sizes = [pages()]
    assert full - sizes[0] <= _GIVEN_BACK + 1
    while len(sizes) < 2 or sizes[-1] < sizes[-2]:
        store.commit([], 1)
        sizes.append(pages())
        assert sizes[-2] - sizes[-1] <= _GIVEN_BACK + 1  # one more that says where pages are
    assert sizes[-1] < full / 4
    store.close()
    assert check(path, quiet) == []
    assert facts(path)["file_bytes"] < 2_000 * 4_000 / 4


def test_the_last_seen_time_is_written_only_if_it_changes(path):
    store = SqliteStore(path, FRAME)
    store.commit([a_subscription("d"), a_subscription("d", 2)], 1_000)

    def changed(time_ms):
        before = store.database.total_changes
        store.commit([SetLastSeen("d")], time_ms)
        return store.database.total_changes - before - 2  # time and number are written in any case

    assert changed(1_000 + _LAST_SEEN_STEP_MS) == 0
    assert changed(1_001 + _LAST_SEEN_STEP_MS) == 2
    assert changed(1_002 + _LAST_SEEN_STEP_MS) == 0
    assert store.overdue(1_001 + _LAST_SEEN_STEP_MS, 9) == []
    assert store.overdue(1_002 + _LAST_SEEN_STEP_MS, 9) == ["d"]
    store.close()


def test_a_subscribe_updates_the_last_seen_time(path):
    store = SqliteStore(path, FRAME)
    store.commit([a_subscription("d")], 1)
    store.commit([a_subscription("d", 2)], 1_000)
    assert store.overdue(1_000, 9) == []
    assert store.overdue(1_001, 9) == ["d"]
    store.close()


FULL = """
import resource, signal, sys
from server.errors import StoreError
from server.store.mutations import PutObject
from server.store import SqliteStore, upkeep
from tests.store.conftest import FRAME, an_object

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
upkeep.LOG_BYTES = int(sys.argv[2])
store = SqliteStore(sys.argv[1], FRAME)
number = 0
kept, refused = [], []

def put():
    global number
    number += 1
    try:
        store.commit([PutObject(an_object(number, 10**9, bytes(1_500))) for _ in range(1)], number)
    except StoreError as error:
        assert "cannot be written" in str(error), error
        refused.append(number)
    else:
        kept.append(number)

_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for room in (300_000, 600_000, 1_200_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    before = len(refused)
    while len(refused) < before + 20:
        put()
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
before = len(refused)
for _ in range(50):
    put()
assert len(refused) == before, "there is room again"
print(kept)
"""


@pytest.mark.processes
@pytest.mark.parametrize("log_bytes", [100_000, 10**9])
def test_a_full_disk_refuses_whole_commits_until_there_is_room(path, log_bytes):
    """No file of the process may grow beyond a size: the log fills up, or the file, or both."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(log_bytes)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    kept = [int(one) for one in done.stdout.strip("[]\n").split(", ")]
    assert len(kept) > 100
    store = SqliteStore(path, FRAME)
    assert ids_of(store.recover()) == kept
    store.close()
    assert check(path, quiet) == []
