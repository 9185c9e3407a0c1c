"""What has vanished from the files of a store is named at the start, and refused unless accepted."""

from __future__ import annotations

import logging
import random
import re
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from server.errors import StoreError
from server.store import SqliteStore, backup, check, compact, facts, log_frames, reading, restore
from server.store import mark as marks
from server.store.checksums import outcome_checksum
from server.store.mutations import DeleteObject, DeleteSent, DeleteSubscription, PutObject
from tests.store.conftest import FRAME, a_subscription, an_object, quiet
from tests.store.power_cuts import cut_power
from tests.support.stored import ids_of, subscriptions_of

pytestmark = pytest.mark.usefixtures("without_fsync")

LATE_MS = 10**9
COMMITS = 40


@pytest.fixture
def killed(tmp_path):
    """A store as a kill leaves it: its file, its log, its mark."""
    store = SqliteStore(tmp_path / "live.db", FRAME)
    for number in range(1, COMMITS + 1):
        store.commit(
            [PutObject(an_object(number, LATE_MS, bytes(300))), a_subscription("d", number)], number
        )
        if number == COMMITS // 2:
            store.upkeep.checkpoint()
    folder = tmp_path / "dead"
    folder.mkdir()
    for suffix in ("", "-wal", "-mark"):
        shutil.copy(f"{store.path}{suffix}", folder / f"store.db{suffix}")
    store.close()
    return folder / "store.db"


def bytes_of(path):
    """What the files hold; an empty log and the lock come and go."""
    kept = {one.name: one.read_bytes() for one in path.parent.iterdir() if one.suffix != ".lock"}
    return {name: data for name, data in kept.items() if data and not name.endswith("-shm")}


def recovered_ids(path, **options):
    store = SqliteStore(path, FRAME, **options)
    try:
        return ids_of(store.recover())
    finally:
        store.close()


def beside(path, suffix):
    return path.with_name(path.name + suffix)


def test_a_store_after_a_kill_is_whole(killed):
    assert recovered_ids(killed) == list(range(1, COMMITS + 1))


@pytest.mark.parametrize("state", ["absent", "empty"])
@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
@pytest.mark.parametrize("has_mark", [False, True])
def test_a_database_that_has_vanished_beside_its_log_is_refused_by_all(
    killed, tmp_path, state, suffix, has_mark
):
    if state == "absent":
        killed.unlink()
    else:
        killed.write_bytes(b"")
    if suffix == "-journal":
        beside(killed, "-wal").rename(beside(killed, "-journal"))
    if not has_mark:
        beside(killed, "-mark").unlink()
    before = bytes_of(killed)
    for work in (
        lambda: SqliteStore(killed, FRAME),
        lambda: check(killed, quiet),
        lambda: facts(killed),
        lambda: compact(killed),
        lambda: backup(killed, tmp_path / "copy.db", quiet),
        lambda: restore(killed, tmp_path / "copy.db", quiet),
    ):
        with pytest.raises(
            StoreError, match=rf"database is {state} beside its .* would be lost; .*--accept-loss"
        ):
            work()
    assert bytes_of(killed) == before


def flip(path, place, bit=4):
    data = bytearray(path.read_bytes())
    data[place] ^= bit
    path.write_bytes(data)


def commit_ends(log):
    """Where the commits of a log end."""
    data = log.read_bytes()
    page = struct.unpack_from(">I", data, 8)[0]
    starts = range(32, len(data), 24 + page)
    return [start + 24 + page for start in starts if struct.unpack_from(">I", data, start + 4)[0]]


def assert_refused(path, match):
    """Refused by whatever reads it, and nothing has changed."""
    before = bytes_of(path)
    for work in (
        lambda: SqliteStore(path, FRAME),
        lambda: compact(path),
        lambda: backup(path, path.with_name("copy.db"), quiet),
    ):
        with pytest.raises(StoreError, match=match):
            work()
    assert any(re.search(match, problem) for problem in check(path, quiet))
    assert bytes_of(path) == before


def test_a_flipped_bit_of_any_commit_but_the_last_is_refused_by_the_log_alone(killed):
    beside(killed, "-mark").unlink()
    log = beside(killed, "-wal")
    whole, ends = log.read_bytes(), commit_ends(log)
    assert len(ends) == COMMITS // 2
    rng = random.Random(3)
    for _ in range(40):
        log.write_bytes(whole)
        flip(log, rng.randrange(56, ends[-2]), 1 << rng.randrange(8))
        try:
            found = recovered_ids(killed)
        except StoreError as error:
            assert re.search(r"its log .* does not match its checksum: .* would be lost", str(error))  # noqa: PT017
            assert "--accept-loss" in str(error)  # noqa: PT017
        else:
            pytest.fail(f"served {len(found)} of {COMMITS}")
    log.write_bytes(whole)
    assert recovered_ids(killed) == list(range(1, COMMITS + 1))


def test_a_flipped_bit_of_the_header_of_the_log(killed):
    flip(beside(killed, "-wal"), 17)
    assert_refused(killed, r"its log .*: its header does not match its checksum: all of its [\d,]+ bytes")


def test_a_flipped_bit_of_the_last_commit_is_found_by_the_mark(killed):
    log = beside(killed, "-wal")
    flip(log, commit_ends(log)[-2] + 700)
    assert_refused(killed, rf"it has {COMMITS - 1} commits, .*-mark records {COMMITS}")


@pytest.mark.parametrize("how", ["a commit", "half a commit", "its header", "nothing", "gone"])
def test_a_log_that_was_cut_short_is_found_by_the_mark(killed, how):
    log = beside(killed, "-wal")
    end = commit_ends(log)[3]
    if how == "gone":
        log.unlink()
    else:
        size = {"a commit": end, "half a commit": end + 5000, "its header": 32, "nothing": 0}[how]
        log.write_bytes(log.read_bytes()[:size])
    kept = COMMITS // 2 + (4 if "commit" in how else 0)
    assert_refused(killed, f"it has {kept} commits, .*: the last {COMMITS - kept} acknowledged commits")


def test_an_older_copy_of_the_database_is_found_by_the_mark(killed):
    backup(killed, killed.with_name("old.db"), quiet)
    store = SqliteStore(killed, FRAME)
    store.commit([PutObject(an_object(COMMITS + 1, LATE_MS))], COMMITS + 1)
    store.close()
    shutil.copy(killed.with_name("old.db"), killed)
    assert_refused(killed, "the last 1 acknowledged commits are missing")


def test_another_store_in_its_place_is_found_by_the_mark(killed, tmp_path):
    other = SqliteStore(tmp_path / "other.db", FRAME)
    for number in range(COMMITS + 5):
        other.commit([], number)
    other.close()
    beside(killed, "-wal").unlink()
    shutil.copy(tmp_path / "other.db", killed)
    assert_refused(killed, "-mark belongs to another store: another database was served here before")


@pytest.mark.parametrize("content", [None, b"", bytes(60), b"garbage " * 8])
def test_a_mark_that_is_lost_loses_nothing(killed, content, caplog):
    mark = beside(killed, "-mark")
    mark.unlink() if content is None else mark.write_bytes(content)
    assert recovered_ids(killed) == list(range(1, COMMITS + 1))
    assert ("the server cannot verify" in caplog.text) is (content == b"garbage " * 8)
    assert marks.read(str(killed)).commit_count == COMMITS


def test_an_accepted_loss_is_logged_and_neither_ids_nor_time_go_back(killed, caplog):
    log = beside(killed, "-wal")
    flip(log, commit_ends(log)[3] + 100)
    kept = COMMITS // 2 + 4
    with caplog.at_level(logging.WARNING):
        store = SqliteStore(killed, FRAME, accept_loss=True)
    assert "the loss is accepted" in caplog.text
    assert f"the last {COMMITS - kept} acknowledged commits are missing" in caplog.text
    found = store.recover()
    assert ids_of(found) == list(range(1, kept + 1))
    assert (found.next_object_id, found.time_ms) == (COMMITS + 1, COMMITS)
    store.commit([PutObject(an_object(COMMITS + 1, LATE_MS))], COMMITS)
    store.close()
    assert recovered_ids(killed) == [*range(1, kept + 1), COMMITS + 1], "once is enough"


def test_an_accepted_loss_of_all_sets_the_log_aside(killed, caplog):
    size = beside(killed, "-wal").stat().st_size
    killed.unlink()
    store = SqliteStore(killed, FRAME, accept_loss=True)
    assert ids_of(store.recover()) == []
    assert store.recover().next_object_id == COMMITS + 1
    store.close()
    assert beside(killed, "-wal.lost1").stat().st_size == size
    assert "was renamed to" in caplog.text


def test_a_backup_of_the_intact_part(killed, caplog):
    log = beside(killed, "-wal")
    flip(log, commit_ends(log)[3] + 100)
    before = bytes_of(killed)
    backup(killed, killed.with_name("copy.db"), quiet, accept_loss=True)
    assert "acknowledged commits are missing" in caplog.text
    assert recovered_ids(killed.with_name("copy.db")) == list(range(1, COMMITS // 2 + 5))
    assert {name: data for name, data in bytes_of(killed).items() if name in before} == before


# -- what a crash may leave ----------------------------------------------------------------------


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("has_mark", [False, True])
def test_a_power_cut_is_never_refused(tmp_path, sector, has_mark):
    """Commits of many pages; of the last one any sectors are written. Then it goes on, and so again."""
    rng = random.Random(sector + has_mark)
    path = tmp_path / "store.db"
    log, mark = beside(path, "-wal"), beside(path, "-mark")
    SqliteStore(path, FRAME).close()
    acknowledged = 0
    for turn in range(60):
        store = SqliteStore(path, FRAME)
        assert ids_of(store.recover()) == list(range(1, acknowledged + 1))
        for _ in range(rng.randrange(3)):
            acknowledged += 1
            store.commit(
                [PutObject(an_object(acknowledged, LATE_MS, rng.randbytes(rng.randrange(30_000))))], 1
            )
        if rng.random() < 0.3:
            store.upkeep.checkpoint()
        before, noted, copy = log.read_bytes(), mark.read_bytes(), path.read_bytes()
        count = rng.randrange(1, 9)
        rows = [
            PutObject(an_object(acknowledged + 1 + i, LATE_MS, rng.randbytes(9_000)))
            for i in range(count)
        ]
        store.commit(rows, 1)
        after = log.read_bytes()
        store.close()
        path.write_bytes(copy)
        beside(path, "-shm").unlink(missing_ok=True)
        mark.write_bytes(noted)
        if not has_mark:
            mark.unlink()
        cut_power(log, before, after, rng, sector)
        store = SqliteStore(path, FRAME)  # not refused
        found = ids_of(store.recover())
        assert found in (list(range(1, acknowledged + 1)), list(range(1, acknowledged + count + 1))), turn
        acknowledged = len(found)
        store.close()


@pytest.mark.parametrize("sector", [512, 4096])
def test_a_power_cut_while_the_log_is_copied_is_never_refused(tmp_path, sector):
    """The database has any sectors of what is copied; the log, which is synced, has all of it."""
    rng = random.Random(sector)
    path = tmp_path / "store.db"
    store = SqliteStore(path, FRAME)
    for number in range(1, 101):
        store.commit([PutObject(an_object(number, LATE_MS, rng.randbytes(rng.randrange(3_000))))], 7)
        if number == 40:
            store.upkeep.checkpoint()
            before = path.read_bytes()
    log, mark = beside(path, "-wal").read_bytes(), beside(path, "-mark").read_bytes()
    store.upkeep.copy()
    after = path.read_bytes()
    store.close()
    assert len(after) > len(before)
    for share in (0.0, 0.1, 0.5, 0.5, 0.9, 1.0):
        mixed = bytearray(before)
        for place in range(0, len(after), sector):
            if rng.random() < share:
                mixed += bytes(max(0, place + sector - len(mixed)))
                mixed[place : place + sector] = after[place : place + sector]
        path.write_bytes(mixed)
        beside(path, "-wal").write_bytes(log)
        beside(path, "-mark").write_bytes(mark)
        beside(path, "-shm").unlink(missing_ok=True)
        assert recovered_ids(path) == list(range(1, 101))
        assert check(path, quiet) == []


def test_a_kill_after_a_transaction_that_was_rolled_back_is_not_refused(tmp_path, monkeypatch):
    """It has spilled pages into the log, and a shorter one follows: frames behind it are not damage."""
    path = tmp_path / "store.db"
    store = SqliteStore(path, FRAME)
    log = beside(path, "-wal")
    store.commit([PutObject(an_object(1, LATE_MS))], 1)
    before = log.stat().st_size
    store.database.execute("PRAGMA cache_size=10")
    large = [PutObject(an_object(number, LATE_MS, bytes(20_000))) for number in range(2, 200)]
    grown, cut = [], log_frames.cut

    def watched(path, size):
        grown.append(log.stat().st_size)
        cut(path, size)

    monkeypatch.setattr(log_frames, "cut", watched)
    with pytest.raises(StoreError):
        store.commit([*large, a_subscription("d", 1, "no JSON")], 2)
    assert grown[0] > before + 100_000, "it has spilled"
    assert log.stat().st_size == before
    store.commit([PutObject(an_object(2, LATE_MS))], 3)
    folder = tmp_path / "dead"
    folder.mkdir()
    for suffix in ("", "-wal", "-mark"):
        shutil.copy(f"{path}{suffix}", folder / f"store.db{suffix}")
    store.close()
    assert recovered_ids(folder / "store.db") == [1, 2]


def test_a_torn_tail_is_cut_off_at_the_start(killed):
    """Else the next commits would have it behind them."""
    log = beside(killed, "-wal")
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + log.read_bytes()[32:3000])
    store = SqliteStore(killed, FRAME)
    assert log.stat().st_size == size
    store.close()


# -- pages and keys ------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path):
    store = SqliteStore(tmp_path / "store.db", FRAME)
    store.commit([PutObject(an_object(number, LATE_MS, bytes(200))) for number in range(1, 3_001)], 1)
    store.commit([a_subscription(f"d{number:04}", 1) for number in range(3_000)], 2)
    store.close()
    return Path(store.path)


def pages_of(path, kind):
    """Numbers of pages whose first byte is so."""
    data = path.read_bytes()
    return [page for page in range(1, len(data) // 4096) if data[page * 4096] == kind]


def exchange(path, one, other):
    data = bytearray(path.read_bytes())
    page = data[one * 4096 : one * 4096 + 4096]
    data[one * 4096 : one * 4096 + 4096] = data[other * 4096 : other * 4096 + 4096]
    data[other * 4096 : other * 4096 + 4096] = page
    path.write_bytes(data)


@pytest.mark.parametrize("kind", [13, 10], ids=["objects", "subscriptions"])
def test_exchanged_pages_are_found_at_the_start(large, kind):
    leaves = pages_of(large, kind)
    assert len(leaves) > 20
    exchange(large, leaves[7], leaves[11])
    store = SqliteStore(large, FRAME)
    found = store.recover()
    with pytest.raises(StoreError, match=r"row .* is out of order"):
        list(found.objects), list(found.subscriptions)
    store.discard()


def with_a_wrong_inner_key(path):
    """Return the file with a key, in an inner page of objects, less than that of a row before it."""
    data = bytearray(path.read_bytes())
    (inner,) = pages_of(path, 5)
    for place in struct.unpack_from(">90H", data, inner * 4096 + 12):
        key = inner * 4096 + place + 4
        if data[key] & 128 and data[key + 1] > 3:  # a number of two bytes
            data[key + 1] -= 2
            return bytes(data)
    raise AssertionError("there is no such key")


def test_an_inner_key_that_leads_past_rows_is_found_at_the_start(large):
    """Every row is there, in order, and some are not found by their id."""
    large.write_bytes(with_a_wrong_inner_key(large))
    store = SqliteStore(large, FRAME)
    found = store.recover()
    assert ids_of(found) == list(range(1, 3_001))
    with pytest.raises(StoreError, match=r"is damaged: .*out of order"):
        list(found.subscriptions)
    store.discard()


def test_a_delete_that_deletes_nothing_is_damage_and_changes_nothing(large):
    store = SqliteStore(large, FRAME)
    large.write_bytes(with_a_wrong_inner_key(large))  # while it is served
    hidden = [
        number
        for number in range(1, 3_001)
        if not store.database.execute("SELECT 1 FROM objects WHERE object_id = ?", (number,)).fetchone()
    ]
    assert hidden
    message = r"is damaged: 1 of the 2 rows of objects to delete were found; nothing was written"
    with pytest.raises(StoreError, match=message):
        store.commit([DeleteObject(1), DeleteObject(hidden[0])], 3)
    with pytest.raises(StoreError, match="0 of the 1 rows of subscriptions to delete"):
        store.commit([DeleteSubscription("d0001", 2)], 3)
    store.commit([DeleteObject(1), DeleteSubscription("d0001", 1)], 3)
    store.discard()


def test_when_a_device_was_seen_is_verified_at_the_start(large):
    database = sqlite3.connect(large)
    database.execute("UPDATE subscriptions SET last_seen_ms = 1 WHERE device_id = 'd0100'")
    database.commit()
    database.close()
    store = SqliteStore(large, FRAME)
    with pytest.raises(
        StoreError, match="the last-seen time of device 'd0100' does not match its checksum"
    ):
        list(store.recover().subscriptions)
    store.discard()


def test_unsent_changes_are_verified_at_the_start(tmp_path):
    store = SqliteStore(tmp_path / "store.db", FRAME, has_sink=True)
    store.commit([PutObject(an_object(number, LATE_MS)) for number in range(1, 9)], 1)
    store.database.execute("DELETE FROM sink WHERE number = 4")  # the totals are right
    with pytest.raises(StoreError, match="sink has 7 rows, not all of 1 to 8"):
        store.recover()
    store.close()


def test_changes_wait_only_while_there_is_a_sink(tmp_path):
    """A server that is started without its sink has room for publications."""
    for has_sink, waiting_count in ((True, 8), (False, 0), (True, 8)):
        with closing(SqliteStore(tmp_path / "store.db", FRAME, has_sink=has_sink)) as store:
            if store.recover().next_object_id == 1:
                store.commit([PutObject(an_object(number, LATE_MS)) for number in range(1, 9)], 1)
            assert store.unsent_count == waiting_count


# -- what is intact ------------------------------------------------------------------------------


def salvaged(path, caplog):
    with caplog.at_level(logging.WARNING):
        store = SqliteStore(path, FRAME, accept_loss=True)
    found = store.recover()
    ids, subscriptions = ids_of(found), subscriptions_of(found)
    store.commit([PutObject(an_object(found.next_object_id, LATE_MS))], 9)
    store.close()
    assert check(path, quiet) == []
    return ids, subscriptions


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE objects SET checksum = 'text' WHERE object_id = 77",
        "UPDATE objects SET checksum = x'07' WHERE object_id = 77",
        "UPDATE objects SET keywords = x'07' WHERE object_id = 77",
        "UPDATE objects SET lon = 'text' WHERE object_id = 77",
    ],
)
def test_a_row_with_values_of_other_types_is_the_only_one_lost(large, caplog, change):
    """Pages out of place have such rows."""
    with closing(sqlite3.connect(large)) as database:
        database.execute(change)
        database.commit()
    store = SqliteStore(large, FRAME)
    with pytest.raises(StoreError, match="objects"):
        list(store.recover().objects)
    store.discard()
    ids, _ = salvaged(large, caplog)
    assert ids == [number for number in range(1, 3_001) if number != 77]


def test_an_outcome_whose_reply_is_no_text_is_damaged():
    with pytest.raises(reading.Damage, match="row 1 of outcomes"):
        reading.verified([(5, 1, b"request", 0, b"reply")], "outcomes", outcome_checksum)


def test_a_damaged_row_is_the_only_one_lost(large, caplog):
    database = sqlite3.connect(large)
    database.execute("UPDATE objects SET lon = 14.3 WHERE object_id = 77")
    database.execute("UPDATE subscriptions SET kind = 1 WHERE device_id = 'd0100'")
    database.execute("UPDATE subscriptions SET last_seen_ms = 1 WHERE device_id = 'd0101'")
    database.commit()
    database.close()
    damaged = large.read_bytes()
    store = SqliteStore(large, FRAME)
    with pytest.raises(
        StoreError, match=r"row 77 of objects does not match its checksum; .*--accept-loss"
    ):
        list(store.recover().objects)
    store.discard()
    ids, subscriptions = salvaged(large, caplog)
    assert ids == [number for number in range(1, 3_001) if number != 77]
    assert len(subscriptions) == 2_999
    assert "1 rows of objects, 1 rows of subscriptions are lost" in caplog.text
    assert large.with_name("store.db.damaged1").read_bytes() == damaged
    assert f"the damaged store is kept as {large}.damaged1" in caplog.text
    for one in large.parent.iterdir():
        assert one.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("how", ["zeros", "exchanged"])
@pytest.mark.parametrize("kind", [13, 10], ids=["objects", "subscriptions"])
def test_of_damaged_pages_all_other_rows_are_kept(large, caplog, how, kind):
    leaves = pages_of(large, kind)
    if how == "zeros":
        data = bytearray(large.read_bytes())
        data[leaves[7] * 4096 : leaves[7] * 4096 + 4096] = bytes(4096)
        large.write_bytes(data)
    else:
        exchange(large, leaves[7], leaves[11])
    ids, subscriptions = salvaged(large, caplog)
    for kept, is_damaged in ((ids, kind == 13), (subscriptions, kind == 10)):
        least = 3_000 - 2 * 3_000 // 10 if is_damaged else 3_000
        assert least <= len(kept) <= 3_000 - (is_damaged and how == "zeros")
    assert ids == sorted(set(ids))
    assert "the loss is accepted" in caplog.text


def test_of_a_store_without_a_first_page_nothing_can_be_read(large):
    data = large.read_bytes()
    large.write_bytes(bytes(4096) + data[4096:])
    with pytest.raises(StoreError, match="restore a backup"):
        SqliteStore(large, FRAME, accept_loss=True)
    assert large.read_bytes() == bytes(4096) + data[4096:]


def test_a_kill_while_a_damaged_store_is_replaced_loses_nothing_of_its_log(killed, tmp_path, monkeypatch):
    """The flag may be given again."""
    (tmp_path / "damaged").mkdir()
    path = tmp_path / "damaged" / "store.db"
    with closing(sqlite3.connect(killed, isolation_level=None)) as database:
        database.execute("UPDATE objects SET lon = 14.3 WHERE object_id = 7")
        for suffix in ("", "-wal", "-mark"):  # before the log is copied into the file
            shutil.copy(beside(killed, suffix), beside(path, suffix))

    def killed_here(*_):
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed_here)
        with pytest.raises(StoreError, match="killed"):
            SqliteStore(path, FRAME, accept_loss=True)
    assert recovered_ids(path, accept_loss=True) == [n for n in range(1, COMMITS + 1) if n != 7]


# -- settings and numbers ------------------------------------------------------------------------


@pytest.fixture
def closed(tmp_path):
    """A store with a sink, of COMMITS objects, of which the last ones are retracted, and its mark."""
    store = SqliteStore(tmp_path / "store.db", FRAME, has_sink=True)
    for number in range(1, COMMITS + 1):
        rows = [PutObject(an_object(number, LATE_MS)), a_subscription("d", number)]
        store.commit(rows, 1_000 + number)
    store.commit([DeleteObject(number) for number in range(COMMITS - 4, COMMITS + 1)], 2_000)
    store.commit([DeleteSent(COMMITS - 2)], 2_001)
    store.close()
    return Path(store.path)


SINK_NUMBER = COMMITS + 5


def edit(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def changes_of(store):
    return [(one.number, one.action, one.object_id) for one in store.unsent(100)]


def restarted(path, caplog):
    """Start with the flag, publish, and start without it; return the first recovery and its changes."""
    with closing(SqliteStore(path, FRAME, has_sink=True, accept_loss=True)) as store:
        found = store.recover()
        changes = changes_of(store)
        ids = ids_of(found)
        assert len(subscriptions_of(found)) == COMMITS
        store.commit([PutObject(an_object(found.next_object_id, LATE_MS))], 9_000)
    assert "the loss is accepted" in caplog.text
    assert check(path, quiet) == []
    with closing(SqliteStore(path, FRAME, has_sink=True)) as store:
        again = store.recover()
        assert ids_of(again) == sorted([*ids, found.next_object_id])
        assert changes_of(store)[:-1] == changes
        list(again.subscriptions)
    return found, ids, changes


LOST = "UPDATE meta SET name = 'x' || name WHERE name = '{}'"
CHANGED = "UPDATE meta SET value = value || '1' WHERE name = '{}'"
SETTINGS = ("store_id", "commit_count", "next_object_id", "time_ms", "sink_number")


@pytest.mark.parametrize("how", [LOST, CHANGED])
@pytest.mark.parametrize("names", [*[(name,) for name in SETTINGS], SETTINGS], ids="-".join)
def test_with_damaged_settings_neither_ids_nor_time_go_back(closed, caplog, how, names):
    edit(closed, *(how.format(name) for name in names))
    name = names[0] if how == CHANGED else f"x{names[0]}"
    assert any(f"{name} does not match its checksum" in problem for problem in check(closed, quiet))
    found, ids, changes = restarted(closed, caplog)
    assert ids == list(range(1, COMMITS - 4))
    assert (found.next_object_id, found.time_ms) == (COMMITS + 1, 2_001)
    latest = 2 * COMMITS if "sink_number" in names else SINK_NUMBER
    assert [number for number, _, _ in changes] == list(range(latest - 6, latest + 1))
    assert f"{len(names)} rows of settings" in caplog.text


def test_without_a_mark_ids_and_time_follow_the_rows(closed, caplog):
    beside(closed, "-mark").unlink()
    edit(closed, *(LOST.format(name) for name in SETTINGS))
    found, _, _ = restarted(closed, caplog)
    assert (found.next_object_id, found.time_ms) == (COMMITS + 1, 2_000)


def test_the_mark_of_another_store_gives_no_id(closed, tmp_path, caplog):
    other = SqliteStore(tmp_path / "other.db", FRAME)
    other.commit([PutObject(an_object(COMMITS * 9, LATE_MS))], 8_000)
    other.close()
    shutil.copy(f"{other.path}-mark", beside(closed, "-mark"))
    edit(closed, "UPDATE objects SET lon = 14.3 WHERE object_id = 7")
    found, ids, _ = restarted(closed, caplog)
    assert 7 not in ids
    assert (found.next_object_id, found.time_ms) == (COMMITS + 1, 2_001)


@pytest.mark.parametrize("number", [COMMITS - 1, COMMITS + 1, SINK_NUMBER])
def test_changes_behind_a_damaged_one_are_kept_under_larger_numbers(closed, caplog, number):
    with closing(SqliteStore(closed, FRAME, has_sink=True)) as store:
        before = changes_of(store)
    assert [one[0] for one in before] == list(range(COMMITS - 1, SINK_NUMBER + 1))
    edit(closed, f"UPDATE sink SET payload = x'00' WHERE number = {number}")  # noqa: S608
    _, ids, changes = restarted(closed, caplog)
    assert ids == list(range(1, COMMITS - 4))
    kept = [one for one in before if one[0] != number]
    assert [one[1:] for one in changes] == [one[1:] for one in kept]
    assert [one[0] for one in changes] == list(range(SINK_NUMBER - 5, SINK_NUMBER + 1))
    assert "1 rows of sink are lost" in caplog.text


def test_a_gap_in_the_changes_for_the_sink_is_named_and_closed(closed, caplog):
    edit(closed, f"DELETE FROM sink WHERE number = {COMMITS + 2}")  # noqa: S608
    assert check(closed, quiet) == [f"sink has 6 rows, not all of {COMMITS - 1} to {SINK_NUMBER}"]
    _, _, changes = restarted(closed, caplog)
    assert len(changes) == 6
