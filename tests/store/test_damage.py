"""Files that a crash or a bad disk has damaged: what comes back is a moment that was, or an error.

A model keeps what each commit has made of the store. Random commits, with checkpoints between, then the
files as a kill would leave them, damaged somewhere: what is recovered must be one of the model's states.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.errors import StoreError
from server.model import LiveObject
from server.store import SqliteStore
from server.store.mutations import (
    DeleteObject,
    DeleteSubscription,
    PutObject,
    SetLastSeen,
    SetTime,
)
from tests.store.conftest import FRAME, a_subscription
from tests.store.power_cuts import cut_power
from tests.support.amounts import SEED, TIMES, examples
from tests.support.stored import encoded, objects_of, subscriptions_of

pytestmark = pytest.mark.usefixtures("without_fsync")

FOREVER_MS = 10**12
WORDS = ("a", "tea é", "茶", 'quo"te', "back\\slash")

operations = st.one_of(
    st.tuples(st.just("publish"), st.sampled_from(WORDS), st.integers(0, 6_000)),
    st.tuples(st.just("retract"), st.integers(0, 50)),
    st.tuples(st.just("subscribe"), st.sampled_from("abc"), st.integers(1, 3), st.integers(1, 100)),
    st.tuples(st.just("unsubscribe"), st.integers(0, 50)),
    st.tuples(st.just("heard"), st.sampled_from("abc")),
    st.tuples(st.just("time"), st.integers(1, 10_000_000)),
)
VALUES = st.integers(1, 255)
EVERY = max(1, round(10 / TIMES))
"""Of so many bytes of a small store one is damaged."""
batches = st.lists(
    st.tuples(st.lists(operations, min_size=1, max_size=6), st.booleans()), min_size=2, max_size=10
)
patient = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Model:
    """What a store should hold."""

    def __init__(self) -> None:
        self.objects = {}
        self.subscriptions = {}
        self.time_ms = 0
        self.next_id = 1

    def rows(self, chosen):
        """Return rows of operations, at most one of each thing, as batches of the command loop have."""
        found = []
        touched = set()
        time_ms = self.time_ms
        for kind, *details in chosen:
            row = self._row(kind, details, touched)
            if row is not None:
                found.append(row)
            if isinstance(row, SetTime):
                time_ms = max(time_ms, row.time_ms)
        self.time_ms = time_ms
        return found

    def _row(self, kind, details, touched):  # noqa: PLR0911 - one a kind
        if kind == "publish":
            word, size = details
            point = FRAME.project(14.5, 35.5)
            payload = bytes(i * 7 % 256 for i in range(size))
            item = LiveObject(self.next_id, 14.5, -0.0 + 35.5, point, (word,), 0, FOREVER_MS, payload, "")
            self.next_id += 1
            self.objects[item.object_id] = item
            touched.add(item.object_id)
            return PutObject(item)
        if kind == "retract":
            ids = [one for one in sorted(self.objects) if one not in touched]
            if not ids:
                return None
            object_id = ids[details[0] % len(ids)]
            touched.add(object_id)
            del self.objects[object_id]
            return DeleteObject(object_id)
        if kind == "subscribe":
            device, number, k = details
            row = a_subscription(device, number, encoded([WORDS[:2], k, 1.0 / k]), kind=k % 3)
            if (device, number) in touched:
                return None
            touched.add((device, number))
            self.subscriptions[device, number] = row
            return row
        if kind == "unsubscribe":
            names = [one for one in sorted(self.subscriptions) if one not in touched]
            if not names:
                return None
            name = names[details[0] % len(names)]
            touched.add(name)
            del self.subscriptions[name]
            return DeleteSubscription(*name)
        if kind == "heard":
            return SetLastSeen(details[0])
        return SetTime(self.time_ms + details[0])

    def state(self):
        objects = tuple(self.objects[one] for one in sorted(self.objects))
        subscriptions = tuple(self.subscriptions[one] for one in sorted(self.subscriptions))
        return objects, subscriptions, self.time_ms, self.next_id


def recovered(path):
    store = SqliteStore(path, FRAME)
    try:
        found = store.recover()
        objects = objects_of(found, FRAME)
        return objects, subscriptions_of(found), found.time_ms, found.next_object_id
    finally:
        store.close()


@contextmanager
def killed(chosen):
    """Commit batches; yield the store as a kill leaves it, its states, its log before the last commit.

    Without its mark, which knows of the last commit: what is found is found by all else.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        store = SqliteStore(path, FRAME)
        log = Path(f"{path}-wal")
        model = Model()
        states = [model.state()]
        before = b""
        for number, (operation, is_checkpointed) in enumerate(chosen, 1):
            rows = model.rows(operation)
            before = log.read_bytes()
            store.commit(rows, model.time_ms)
            states.append(model.state())
            if is_checkpointed and number < len(chosen):
                store.upkeep.checkpoint()
        dead = Path(folder) / "dead"
        dead.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", dead / f"store.db{suffix}")
        store.close()
        yield dead / "store.db", states, before


def flip(path, place, count, value):
    with path.open("r+b") as file:
        file.seek(place)
        some = file.read(count)
        file.seek(place)
        file.write(bytes(one ^ value for one in some))


@patient
@given(batches)
def test_a_kill_loses_nothing(chosen):
    with killed(chosen) as (path, states, _):
        assert recovered(path) == states[-1]
        assert recovered(path) == states[-1]


@patient
@given(batches, st.randoms(use_true_random=False), st.sampled_from([512, 4096]))
def test_a_torn_last_write_loses_nothing_that_was_acknowledged(chosen, rng, sector):
    """The last commit was under way: any of its sectors may be on disk."""
    with killed(chosen) as (path, states, before):
        log = Path(f"{path}-wal")
        cut_power(log, before, log.read_bytes(), rng, sector)
        found = recovered(path)
        assert found in states[-2:]
        store = SqliteStore(path, FRAME)  # and it goes on
        store.commit([SetTime(found[2] + 1)], found[2] + 1)
        store.close()
        assert recovered(path)[2] == found[2] + 1


@patient
@given(batches, st.data())
def test_damage_anywhere_in_the_log_gives_the_last_moments_or_an_error(chosen, data):
    """Without the mark a damaged last commit looks like one that was in progress."""
    with killed(chosen) as (path, states, _):
        log = Path(f"{path}-wal")
        size = log.stat().st_size
        place = data.draw(st.integers(0, size - 1))
        flip(log, place, data.draw(st.integers(1, 64)), data.draw(VALUES))
        assert_a_moment_or_an_error(path, states[-2:])


@patient
@given(batches, st.data())
def test_damage_anywhere_in_the_file_gives_the_old_contents_or_an_error(chosen, data):
    with killed(chosen) as (path, states, _):
        SqliteStore(path, FRAME).close()  # the log goes into the file
        size = path.stat().st_size
        if data.draw(st.integers(0, 4)) == 0:
            with path.open("r+b") as file:
                file.truncate(data.draw(st.integers(1, size - 1)))
        else:
            for _ in range(data.draw(st.integers(1, 3))):
                place = data.draw(st.integers(0, size - 1))
                flip(path, place, data.draw(st.integers(1, 16)), data.draw(VALUES))
        assert_a_moment_or_an_error(path, states[-1:])


def assert_a_moment_or_an_error(path, states):
    try:
        found = recovered(path)
    except StoreError:
        return
    assert found in states


def test_any_byte_of_a_small_store_may_be_damaged(tmp_path):
    """Three damages to a byte of a store that was closed: to a tenth of its bytes, other ones each day.

    `make test-long` damages each byte.
    """
    chosen = [([("publish", "茶", 40), ("subscribe", "a", 1, 3), ("time", 5)], False)] * 3
    with killed(chosen) as (path, states, _):
        SqliteStore(path, FRAME).close()
        whole = path.read_bytes()
        places = [i for i, one in enumerate(whole) if one or i < 100]  # the header has 100
        places = places[SEED % EVERY :: EVERY]
        noticed = 0
        damaged = tmp_path / "damaged.db"
        damaged.touch()
        for place in places:
            for value in (1, 128, 255):
                for suffix in ("-wal", "-shm"):
                    Path(f"{damaged}{suffix}").unlink(missing_ok=True)
                with damaged.open("r+b") as file:  # to begin a file anew takes longer than all else
                    file.write(whole)
                    file.truncate()
                flip(damaged, place, 1, value)
                try:
                    assert recovered(damaged) == states[-1], f"byte {place} ^ {value}"
                except StoreError:
                    noticed += 1
        assert noticed > len(places)


def test_a_page_of_before_is_noticed(path, tmp_path):
    """The disk kept an older page where a newer one was written: each is whole by itself."""
    store = SqliteStore(path, FRAME)
    point = FRAME.project(14.5, 35.5)

    def committed(first):
        items = [
            LiveObject(i, 14.5, 35.5, point, ("a",), 0, FOREVER_MS, bytes(50), "")
            for i in range(first, first + 300)
        ]
        subscriptions = [a_subscription("d", 1), a_subscription("d", first)]
        store.commit([*map(PutObject, items), *subscriptions], first)
        store.commit([DeleteObject(first + 7)], first)
        store.upkeep.checkpoint()
        return path.read_bytes()

    before, after = committed(1), committed(301)
    store.close()
    latest = recovered(path)
    noticed = 0
    for page in range(0, len(before), 4096):
        if before[page : page + 4096] == after[page : page + 4096]:
            continue
        mixed = tmp_path / f"{page}.db"
        mixed.write_bytes(after[:page] + before[page : page + 4096] + after[page + 4096 :])
        try:
            assert recovered(mixed) == latest, f"page {page // 4096}"
        except StoreError:
            noticed += 1
    assert noticed >= 3
