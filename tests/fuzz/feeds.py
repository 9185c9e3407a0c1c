"""What lies in files and folders of others: Parquet files, their names, entries, heads; and scrapes."""

from __future__ import annotations

import io
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cluster.entries import NO_CURSOR
from feeds.bounds import UnreadableError
from feeds.redis.entries import ARROW, JSON, packed, read_rows
from feeds.schemas import MESSAGES
from identity.scrape_request import BadRequestError, Scrape, scrape_from
from safe_region.earth.frame import Area, Frame
from server.bridge.chunk import ROWS_MAX
from server.bridge.folder import FolderSourceFeed
from server.bridge.parquet_file import chunks
from server.bridge.rows import RowValidator
from server.limits import Limits
from streaming.tasks.plain import PlainError, decoded
from streaming.tasks.shared_arrays import LostError, Note, SharedArrays
from tests.fuzz.target import Target, scratch_folder

_FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))


def _rows(count: int) -> pa.Table:
    row = {"action": "publish", "object_id": 7, "time_ms": 1_000, "lon": 14.5, "lat": 35.5}
    row |= {"keywords": ["sushi", None], "ttl_ms": 500, "payload": b"p" * 9}
    return pa.Table.from_pylist(
        [row, {"action": "retract", "object_id": 7, "time_ms": 2}] * count, MESSAGES
    )


def _files():
    """A folder with a file, beside one that is fine: whatever the first has, the second is taken."""
    where = scratch_folder()
    validator = RowValidator(Limits(), _FRAME)
    pq.write_table(_rows(1), where / "z.parquet")
    fine = (where / "z.parquet").read_bytes()
    source = FolderSourceFeed(where)  # one for all inputs: it begins a process that reads

    def run(data: bytes) -> None:
        (where / "b.parquet").write_bytes(data)
        (where / "z.parquet").write_bytes(fine)
        after, taken = "", []
        for _ in range(3):
            for chunk in source.next("files", after, 0.0):
                after = chunk.offset
                taken.append(chunk)
                assert len(chunk.rows) <= ROWS_MAX
                assert "\n" not in chunk.passed_over
                validator.validated(chunk.rows, "files", NO_CURSOR, chunk.offset, 0)
        assert after == "z.parquet"
        assert sum(bool(one.passed_over) for one in taken) <= 1
        for one in where.iterdir():
            one.unlink()

    return run


def _file_seeds() -> list[bytes]:
    found = []
    for options in (
        {"compression": "none"},
        {"compression": "snappy", "data_page_version": "2.0"},
        {"compression": "zstd", "use_dictionary": False, "row_group_size": 3},
        {"compression": "none", "write_statistics": False, "data_page_size": 16},
    ):
        target = io.BytesIO()
        pq.write_table(_rows(3), target, **options)
        found.append(target.getvalue())
    with pa.BufferReader(found[0]) as file:
        assert sum(batch.num_rows for batch in chunks(file)) == 6
    return found


def _names():
    """A file of whatever name a file may have."""
    where = scratch_folder()
    source = FolderSourceFeed(where)

    def run(data: bytes) -> None:
        name = data.replace(b"/", b"").replace(b"\0", b"")[:200] + b".parquet"
        path = os.fsencode(where) + b"/" + name
        with open(path, "wb") as file:  # noqa: PTH123 - a name in bytes
            file.write(b"no Parquet")
        found = list(source.next("files", "", 0.0))
        is_hidden = name[:1] in (b".", b"_")
        assert len(found) == (not is_hidden)
        for chunk in found:
            assert chunk.passed_over.isprintable()
            assert os.path.lexists(path + b".refused")
        for one in os.listdir(os.fsencode(where)):  # noqa: PTH208 - the same
            os.unlink(os.fsencode(where) + b"/" + one)  # noqa: PTH108 - the same

    return run


def _redis_entries():
    def run(data: bytes) -> None:
        for field in (ARROW, JSON):
            try:
                rows = read_rows({field: data}, MESSAGES)
            except UnreadableError as error:
                assert str(error).isprintable()
                continue
            assert rows.schema == MESSAGES
            rows.validate(full=True)
            rows.to_pylist()

    return run


def _redis_entry_seeds() -> list[bytes]:
    rows = _rows(2).combine_chunks().to_batches()[0]
    plain = pa.BufferOutputStream()
    with pa.ipc.new_stream(plain, rows.schema) as writer:
        writer.write_batch(rows)
    coded = rows.set_column(0, "action", rows["action"].dictionary_encode())
    return [packed(rows), packed(coded), plain.getvalue().to_pybytes(), b'{"object_id": 1}\n{}']


def _scrapes():
    def run(data: bytes) -> None:
        for is_local in (False, True):
            try:
                found = scrape_from(data, is_local=is_local)
            except BadRequestError as error:
                assert error.status[:3].isdigit()
                continue
            assert isinstance(found, Scrape)

    return run


def _heads():
    """What another program has put in place of a head, and forms of values."""
    where = scratch_folder()
    shared = SharedArrays(where / "one")

    def run(data: bytes) -> None:
        with shared.locked():
            (where / "one" / "head").write_bytes(data)
            shared.note()
            with suppress(LostError):
                shared.take()
            shared.discard()
        with suppress(PlainError):
            decoded({"root": [0], "nodes": [[data.decode("latin-1"), 1]]}, lambda _, __: b"")

    return run


def _head_seeds() -> list[bytes]:
    import numpy as np  # noqa: PLC0415

    from index.square import Square  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        shared = SharedArrays(Path(folder) / "one")
        found = []
        for value in ([1, {"a": (2.5, None)}], {"x": np.arange(5)}, (Square(0.0, 0.0, 1.0), {3})):
            with shared.locked():
                shared.keep(value, Note(1, b"digest", b"answer"))
                found.append((Path(folder) / "one" / "head").read_bytes())
    return found


FILES = Target("files", _files, _file_seeds, ("server.bridge", "feeds.bounds"), 40_000)
NAMES = Target(
    "names",
    _names,
    lambda: [b"a", b"b\n2026 INFO x: y", b"\xff", b"_x", b"."],
    ("server.bridge",),
    20_000,
)
REDIS = Target("redis", _redis_entries, _redis_entry_seeds, ("feeds",), 60_000)
SCRAPES = Target(
    "scrapes",
    _scrapes,
    lambda: [
        b"GET /metrics?name[]=a HTTP/1.1\r\nHost: [::1]:9464\r\nAccept-Encoding: gzip\r\n\r\n",
        b"HEAD / HTTP/1.0\r\n\r\n",
    ],
    ("identity.scrape_request",),
    100_000,
)
HEADS = Target(
    "heads", _heads, _head_seeds, ("streaming.tasks.plain", "streaming.tasks.shared_arrays"), 40_000
)
