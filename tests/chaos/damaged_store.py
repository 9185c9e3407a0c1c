"""A store with everything in it, as it was acknowledged, and what a start makes of its damaged files.

The store is written once, by the same code as a server's. Its files are kept as they were at three
moments, and as a kill leaves them. What was acknowledged is a model of its own, which the files are
compared with before any damage.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safe_region.earth.frame import Area, Frame
from safe_region.earth.shapes import Bounds
from safe_region.scoring.idf import IdfTable
from server.errors import StoreError
from server.model import LiveObject
from server.store import SqliteStore
from server.store.mutations import (
    DeleteDevice,
    DeleteObject,
    DeleteSent,
    DeleteSubscription,
    Mutation,
    PutIdf,
    PutObject,
    PutSubscription,
    SetLastSeen,
    SetSourceOffset,
    SetTime,
)

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
NAME = "store.db"
FILES = ("", "-wal", "-mark")
Files = dict[str, bytes]
"""Contents by what follows the name of the store; a file that is absent is not in it."""

_EXPIRY_MS = 10**13
_HOURS_MS = 7_200_000
_TABLES = ("objects", "subscriptions", "idf", "sink", "outcomes", "meta")
_WORDS = ("ice", "tea é", "茶", "live music", 'quo"te')
_SPEC = '{"top_k":{"k":%d,"keywords":["tea %s"]}}'


@dataclass
class Model:
    """What was acknowledged."""

    time_ms: int = 1_000
    next_id: int = 1
    objects: dict[int, tuple[bytes, str]] = field(default_factory=dict)
    subscriptions: dict[tuple[str, int], str] = field(default_factory=dict)
    pending: list[int] = field(default_factory=list)
    """Objects of what is to be written to the sink."""


@dataclass
class Evidence:
    """Files of one store, and of another."""

    early: Files
    """A backup of when it was young."""
    middle: Files
    """As a kill would have left it between two checkpoints."""
    killed: Files
    """As a kill leaves it in the end."""
    closed: Files
    """The same, closed in peace."""
    other: Files
    """Another store, killed."""
    earlier_marks: list[bytes]
    """Those of the last commits, oldest first."""
    rows: dict[str, list[tuple[Any, ...]]]
    """What was acknowledged, row by row."""
    earlier_rows: list[dict[str, list[tuple[Any, ...]]]]
    """The same before the last commits, oldest first."""


_KEPT = 4
"""Commits before the last of which marks and rows are kept."""


def build(folder: Path, seed: int) -> Evidence:
    """Write the store."""
    rng = random.Random(seed)
    path = folder / "built.db"
    store, model = SqliteStore(path, FRAME, has_sink=True), Model()
    marks, earlier_rows = [], []
    for _ in range(25):
        _commit(store, model, rng, 14, may_forget=True)
    store.upkeep.checkpoint()
    store.close()
    early = _files(path)
    early.pop("-wal", None)
    store = SqliteStore(path, FRAME, has_sink=True)
    for _ in range(15):
        _commit(store, model, rng, 10)
    middle = _files(path)
    store.upkeep.checkpoint()
    for left in range(24, 0, -1):
        _commit(store, model, rng, 6, is_one=left <= _KEPT + 1)
        if 1 < left <= _KEPT + 1:
            marks.append(_files(path)["-mark"])
            earlier_rows.append(rows_of(path))
    killed = _files(path)
    rows = rows_of(path)
    _require_model(rows, model)
    store.close()
    closed = _files(path)
    other = _another(folder / "other.db", random.Random(seed + 1))
    return Evidence(early, middle, killed, closed, other, marks, rows, earlier_rows)


def _another(path: Path, rng: random.Random) -> Files:
    store, model = SqliteStore(path, FRAME, has_sink=True), Model()
    for _ in range(90):
        _commit(store, model, rng, 5)
    found = _files(path)
    store.close()
    return found


def _files(path: Path) -> Files:
    names = {suffix: Path(f"{path}{suffix}") for suffix in FILES}
    return {suffix: name.read_bytes() for suffix, name in names.items() if name.exists()}


def rows_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of a store."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return {
            table: database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - names of our own
            for table in _TABLES
        }


def _require_model(rows: dict[str, list[tuple[Any, ...]]], model: Model) -> None:
    assert {row[0]: (row[7], row[8]) for row in rows["objects"]} == model.objects
    assert {(row[0], row[1]): row[5] for row in rows["subscriptions"]} == model.subscriptions
    assert [row[3] for row in rows["sink"]] == model.pending


# -- commits -------------------------------------------------------------------------------------


def _commit(
    store: SqliteStore,
    model: Model,
    rng: random.Random,
    count: int,
    *,
    may_forget: bool = False,
    is_one: bool = False,
) -> None:
    """Commit what happens to objects and devices, and at times, unless it is to be one, to the sink.

    A device that is deleted takes the log with it.
    """
    model.time_ms += rng.randrange(1, _HOURS_MS)
    rows: list[Mutation] = [*_retracted(model, rng, count // 3), *_published(model, rng, count)]
    model.pending += [
        row.item.object_id if isinstance(row, PutObject) else row.object_id
        for row in rows
        if isinstance(row, PutObject | DeleteObject)
    ]
    rows += _subscribed(model, rng, count // 2, may_forget=may_forget)
    if rng.random() < 0.3:
        rows.append(
            PutIdf(rng.randrange(1, 99), IdfTable({word: rng.uniform(0.1, 3) for word in _WORDS}))
        )
    if rng.random() < 0.5:
        rows.append(SetSourceOffset(f"stream{rng.randrange(3)}", str(rng.randrange(10**9))))
    if rng.random() < 0.5:
        rows.append(SetTime(model.time_ms + rng.randrange(999)))
    store.commit(rows, model.time_ms)
    if not is_one and rng.random() < 0.5 and len(model.pending) > 40:
        count = rng.randrange(1, len(model.pending))
        store.commit([DeleteSent(store.unsent(1)[0].number - 1 + count)], model.time_ms)
        del model.pending[:count]
    store.upkeep.wait()


def _retracted(model: Model, rng: random.Random, count: int) -> list[Mutation]:
    ids = rng.sample(sorted(model.objects), min(count, len(model.objects)))
    for object_id in ids:
        del model.objects[object_id]
    return [DeleteObject(object_id, has_expired=rng.random() < 0.3) for object_id in ids]


def _published(model: Model, rng: random.Random, count: int) -> list[Mutation]:
    found: list[Mutation] = []
    for _ in range(count):
        object_id, model.next_id = model.next_id, model.next_id + 1
        lon, lat = rng.uniform(14.2, 14.8), rng.uniform(35.2, 35.8)
        payload = rng.randbytes(rng.choice((0, 30, 200, 200, 900, 9_000)))
        key = f"key-{object_id}" if rng.random() < 0.5 else ""
        area = Bounds(lon - 0.1, lat - 0.1, lon + 0.1, lat + 0.1) if rng.random() < 0.2 else None
        words = tuple(sorted(set(rng.choices(_WORDS, k=3))))
        point = FRAME.project(lon, lat)
        item = LiveObject(
            object_id, lon, lat, point, words, model.time_ms, _EXPIRY_MS, payload, key, area, "shop"
        )
        model.objects[object_id] = payload, key
        found.append(PutObject(item))
    return found


def _subscribed(model: Model, rng: random.Random, count: int, *, may_forget: bool) -> list[Mutation]:
    found: list[Mutation] = []
    for device in rng.sample(range(60), count):
        name = f"device-{device}"
        numbers = [number for one, number in model.subscriptions if one == name]
        act = rng.random()
        if act < 0.1 and numbers and may_forget:
            found.append(DeleteDevice(name))
            for number in numbers:
                del model.subscriptions[name, number]
        elif act < 0.25 and numbers:
            found.append(DeleteSubscription(name, numbers[0]))
            del model.subscriptions[name, numbers[0]]
        elif act < 0.4 and numbers:
            found.append(SetLastSeen(name))
        else:
            number = rng.randrange(1, 9)
            title = f"named {number}" if rng.random() < 0.5 else ""
            spec = _SPEC % (number, "x" * rng.choice((1, 50, 300)))
            found.append(PutSubscription(name, number, number % 3, spec, title))
            model.subscriptions[name, number] = title
    return found


# -- starts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a start made of files."""

    refusal: str
    """Why it was refused; empty if it was not."""
    rows: dict[str, list[tuple[Any, ...]]]


def write(folder: Path, files: Files) -> None:
    """Write files into a folder of their own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for suffix, data in files.items():
        Path(f"{folder / NAME}{suffix}").write_bytes(data)


def start(folder: Path, *, accept_loss: bool = False) -> Outcome:
    """Start with the files of a folder as a server does: open, recover all of it, close."""
    path = folder / NAME
    try:
        store = SqliteStore(path, FRAME, has_sink=True, accept_loss=accept_loss)
    except StoreError as error:
        return Outcome(str(error), {})
    try:
        found = store.recover()
        for part in (found.objects, found.subscriptions):
            for _ in part:
                pass
    except StoreError as error:
        store.discard()
        return Outcome(str(error), {})
    store.close()
    return Outcome("", rows_of(path))
