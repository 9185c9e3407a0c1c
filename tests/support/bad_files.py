"""Files that a source must not take, each with the name of what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from feeds.schemas import MESSAGES

PRIVATE = "12.5601 near Anna"
"""What a file has that no log may repeat."""

FORGED = "2026-01-01 00:00:00,000 INFO server.main: forged"

Make = Callable[[Path], None]


def row(object_id: int, **more: Any) -> dict[str, Any]:
    found = {"action": "publish", "object_id": object_id, "time_ms": 1_000, "lon": 12.1, "lat": 55.05}
    return {**found, "keywords": ["tea"], "ttl_ms": None, "payload": b"p", **more}


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows, MESSAGES), path)


def not_utf8(*values: bytes) -> pa.StringArray:
    """Return texts that are none."""
    raw = pa.array(list(values), pa.binary())
    return pa.StringArray.from_buffers(len(values), raw.buffers()[1], raw.buffers()[2])


def bad_action(path: Path) -> None:
    table = pa.Table.from_pylist([row(900)], MESSAGES)
    pq.write_table(table.set_column(0, MESSAGES.field("action"), not_utf8(b"publish\xff")), path)


def bad_keyword(path: Path) -> None:
    """A keyword that is no text, behind three thousand rows that are fine."""
    rows = [row(50_000 + number) for number in range(3_000)]
    table = pa.Table.from_pylist(rows, MESSAGES)
    words = pa.ListArray.from_arrays(
        np.arange(3_001, dtype=np.int32), not_utf8(*[b"w"] * 2_999, b"w\xff")
    )
    field = MESSAGES.field("keywords")
    pq.write_table(table.set_column(5, field, words.cast(field.type)), path)


def other_columns(path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), path)


def other_types(path: Path) -> None:
    table = pa.Table.from_pylist([row(901)], MESSAGES)
    pq.write_table(table.set_column(3, "lon", pa.array([PRIVATE])), path)


def garbage(path: Path) -> None:
    path.write_bytes(b"PAR1" + bytes(range(256)) + b"PAR1")


def long_end(path: Path) -> None:
    path.write_bytes(b"PAR1" + bytes(100) + (2**31 - 1).to_bytes(4, "little") + b"PAR1")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_short(path: Path) -> None:
    write_rows(path, [row(902)])
    path.write_bytes(path.read_bytes()[:-20])


def folder(path: Path) -> None:
    path.mkdir()
    write_rows(path / "x.parquet", [row(903)])


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_nowhere(path: Path) -> None:
    path.symlink_to("/nonexistent")


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_a_file(path: Path) -> None:
    """A link to what would be fine by itself."""
    write_rows(path.with_name(".beside"), [row(904)])
    path.symlink_to(path.with_name(".beside"))


def many_rows(path: Path) -> None:
    """Sixteen million rows in half a megabyte."""
    table = pa.Table.from_pylist([row(905)], MESSAGES).take(pa.array(np.zeros(1_000_000, np.int32)))
    with pq.ParquetWriter(path, MESSAGES, compression="zstd") as writer:
        for _ in range(16):
            writer.write_table(table, row_group_size=1_000_000)


def large_dictionary(path: Path) -> None:
    """Two thousand rows of thirty megabytes each, which lie in the file once."""
    none = np.zeros(2_000, np.int32)
    table = pa.Table.from_pylist([row(906)], MESSAGES).take(pa.array(none))
    payload = pa.DictionaryArray.from_arrays(none, pa.array([bytes(30_000_000)]))
    table = table.set_column(7, "payload", payload)
    pq.write_table(
        table, path, compression="zstd", dictionary_pagesize_limit=2**30, write_statistics=False
    )


def large_page(path: Path) -> None:
    """A page of 200 MB, in some kilobytes."""
    table = pa.Table.from_pylist([row(907, payload=bytes(200_000_000))], MESSAGES)
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)


def one_row_of_many_keywords(path: Path) -> None:
    words = pa.array(["w"]).take(pa.array(np.zeros(20_000_000, np.int32)))
    table = pa.Table.from_pylist([row(908)], MESSAGES)
    field = MESSAGES.field("keywords")
    column = pa.ListArray.from_arrays(pa.array([0, len(words)], pa.int32()), words).cast(field.type)
    pq.write_table(table.set_column(5, field, column), path, compression="zstd")


def long_keywords(path: Path) -> None:
    """A row with a thousand times the same three megabytes."""
    none = np.zeros(1_000, np.int32)
    words = pa.DictionaryArray.from_arrays(none, pa.array(["w" * 3_000_000]))
    column = pa.ListArray.from_arrays(pa.array([0, len(words)], pa.int32()), words)
    table = pa.Table.from_pylist([row(910)], MESSAGES).set_column(5, "keywords", column)
    pq.write_table(
        table, path, compression="zstd", dictionary_pagesize_limit=2**30, write_statistics=False
    )


def incremental(path: Path) -> None:
    """Texts each of which is a megabyte of the one before it."""
    rows = [row(920 + number, payload=bytes(1_000_000)) for number in range(100)]
    encoding = {"payload": "DELTA_BYTE_ARRAY"}
    table = pa.Table.from_pylist(rows, MESSAGES)
    pq.write_table(table, path, use_dictionary=False, column_encoding=encoding, write_statistics=False)


CHEAP: tuple[Make, ...] = (
    bad_action,
    bad_keyword,
    other_columns,
    other_types,
    garbage,
    long_end,
    empty,
    cut_short,
    folder,
    pipe,
    link_to_nowhere,
    link_to_a_device,
    link_to_a_file,
)

BOMBS: tuple[Make, ...] = (
    many_rows,
    large_dictionary,
    large_page,
    one_row_of_many_keywords,
    long_keywords,
    incremental,
)
