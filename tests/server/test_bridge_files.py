"""Files of the source that are bad in some way: set aside, named once, and nothing of them is taken."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from feeds.schemas import MESSAGES
from server.bridge import folder as folders
from server.bridge.chunk import Chunk
from server.bridge.folder import FolderSourceFeed
from server.bridge.parquet_file import chunks
from tests.fuzz.feeds import FILES
from tests.support.bad_files import BOMBS, CHEAP, FORGED, PRIVATE, Make, row, write_rows

pytestmark = pytest.mark.processes

_MEMORY_MAX = 300_000_000
"""Bytes of Arrow while a bomb is read; each would come to some gigabytes, or nearly one."""


def read(source: FolderSourceFeed, after: str = "") -> list[Chunk]:
    return list(source.next("files", after, 0.0))


@pytest.mark.parametrize("make", CHEAP, ids=lambda make: make.__name__)
def test_a_bad_file_is_set_aside_and_the_feed_continues(tmp_path: Path, make: Make) -> None:
    write_rows(tmp_path / "a.parquet", [row(1)])
    make(tmp_path / "b.parquet")
    write_rows(tmp_path / "c.parquet", [row(2)])
    source = FolderSourceFeed(tmp_path)
    (first,) = read(source)
    (second,) = read(source, first.offset)
    assert not second.rows
    assert second.offset == first.offset == "a.parquet"
    assert second.passed_over.startswith("file 'b.parquet' is set aside as 'b.parquet.refused': ")
    assert PRIVATE not in second.passed_over
    assert os.path.lexists(tmp_path / "b.parquet.refused")
    (third,) = read(source, second.offset)
    assert [one["object_id"] for one in third.rows] == [2]
    assert read(source, third.offset) == []


@pytest.mark.parametrize("make", BOMBS, ids=lambda make: make.__name__)
def test_a_bomb_is_refused_in_little_memory(
    tmp_path: Path, make: Make, arrow_memory: Callable[[], pa.MemoryPool]
) -> None:
    make(tmp_path / "b.parquet")
    assert (tmp_path / "b.parquet").stat().st_size < 3_000_000
    pool = arrow_memory()
    (found,) = read(FolderSourceFeed(tmp_path))
    assert "is set aside as 'b.parquet.refused': " in found.passed_over
    assert " must " in found.passed_over
    assert pool.max_memory() < _MEMORY_MAX


@pytest.fixture
def arrow_memory() -> Iterator[Callable[[], pa.MemoryPool]]:
    """What has Arrow count from when it is called, and forget that at the end."""
    before = pa.default_memory_pool()

    def counted() -> pa.MemoryPool:
        pool = pa.proxy_memory_pool(before)
        pa.set_memory_pool(pool)
        return pool

    yield counted
    pa.set_memory_pool(before)


def test_a_flipped_bit_in_the_end_of_a_file_ends_nothing_but_its_reader(tmp_path: Path) -> None:
    """Each of these has pyarrow 26 call `abort` when the metadata of a column is looked at."""
    (whole, *_), source = FILES.seeds(), FolderSourceFeed(tmp_path)
    message = []
    for at, bit in ((783, 0), (797, 0), (849, 0), (1086, 6)):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << bit
        (tmp_path / "b.parquet").write_bytes(flipped)
        message += [one.passed_over for one in read(source)]
    assert all("b.parquet.refused" in one for one in message)
    assert any("the reader process terminated while it read the file" in one for one in message)
    (tmp_path / "b.parquet").write_bytes(whole)
    (found,) = read(source)
    assert len(found.rows) == 6
    source.close()


def test_a_name_forges_no_line_of_the_log(tmp_path: Path) -> None:
    (tmp_path / f"b\n{FORGED}.parquet").write_bytes(b"x")
    (found,) = read(FolderSourceFeed(tmp_path))
    assert "\n" not in found.passed_over
    assert f"file 'b\\n{FORGED}.parquet' is set aside" in found.passed_over


def test_a_name_that_is_no_text_is_set_aside(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/b\xff.parquet"
    write_rows(tmp_path / "x", [row(1)])
    (tmp_path / "x").rename(os.fsdecode(name))
    (found,) = read(FolderSourceFeed(tmp_path))
    assert found.offset == ""
    assert found.passed_over.encode().endswith(b"its name is not UTF-8 text")
    assert os.path.lexists(name + b".refused")


def test_files_set_aside_before_are_kept(tmp_path: Path) -> None:
    source = FolderSourceFeed(tmp_path)
    for content in (b"1", b"2"):
        (tmp_path / "b.parquet").write_bytes(content)
        read(source)
    assert (tmp_path / "b.parquet.refused").read_bytes() == b"1"
    assert (tmp_path / "b.parquet.refused-2").read_bytes() == b"2"


@pytest.mark.parametrize("name", ["b.parquet", "b\udcff.parquet"])
def test_a_file_that_cannot_be_set_aside_is_skipped_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As in a folder that must not be written to, which does not keep root from it."""

    def rename(self: Path, _target: Path) -> Path:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "rename", rename)
    (tmp_path / name).write_bytes(b"no Parquet")
    write_rows(tmp_path / "c.parquet", [row(2)])
    source = FolderSourceFeed(tmp_path)
    after, refused, rows = "", [], []
    for _ in range(3):
        for one in read(source, after):
            after, rows = one.offset, rows + one.rows
            refused += [one] if one.passed_over else []
    assert [one["object_id"] for one in rows] == [2]
    ((offset, _, message),) = refused
    assert "is skipped and cannot be set aside (Read-only file system): it" in message
    # What can be noted is, so that the next start does not look at it again.
    assert offset == ("" if "\udcff" in name else name)


def test_a_fault_of_the_system_is_none_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    write_rows(tmp_path / "b.parquet", [row(1)])
    source = FolderSourceFeed(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(folders, "_opened", full)
        with pytest.raises(OSError, match="Too many open files"):
            read(source)
    assert [one["object_id"] for one in read(source)[0].rows] == [1]


def test_rows_come_in_chunks_and_the_last_one_has_the_name(tmp_path: Path) -> None:
    rows = [row(number, keywords=["a", None], ttl_ms=None) for number in range(5_001)]
    pq.write_table(pa.Table.from_pylist(rows, MESSAGES), tmp_path / "b.parquet", row_group_size=700)
    found = read(FolderSourceFeed(tmp_path), "a")
    assert max(len(one.rows) for one in found) == folders.ROWS_MAX
    assert [one.offset for one in found] == ["a"] * (len(found) - 1) + ["b.parquet"]
    assert [one for chunk in found for one in chunk.rows] == rows


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_whatever_writers_make_of_rows_is_read(tmp_path: Path, compression: str, version: str) -> None:
    rows = [
        row(number, payload=bytes([number % 256]) * (number % 50), keywords=[f"w{number % 999}", None])
        for number in range(3_000)
    ]
    table = pa.Table.from_pylist([*rows, row(7, keywords=[], payload=None)], MESSAGES)
    for number, options in enumerate(
        (
            {},
            {"use_dictionary": False},
            {"data_page_size": 100},
            {"dictionary_pagesize_limit": 100, "data_page_size": 500},
        )
    ):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path, compression=compression, data_page_version=version, **options)
        with path.open("rb") as file:
            assert pa.Table.from_batches(chunks(file)).to_pylist() == table.to_pylist()


def test_columns_may_be_missing_in_another_order_and_of_other_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "more": [b"x"],
            "keywords": pa.array([["a"]], pa.large_list(pa.large_string())),
            "time_ms": pa.array([5], pa.int32()),
            "object_id": pa.array([1], pa.uint16()),
            "action": pa.array(["publish"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "b.parquet")
    ((found,),) = [one.rows for one in read(FolderSourceFeed(tmp_path))]
    expected = dict.fromkeys(MESSAGES.names) | {"keywords": ["a"], "time_ms": 5}
    assert found == expected | {"object_id": 1, "action": "publish"}


class Scans:
    """Counts how often a folder is looked through; time passes as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.now_s = 100.0
        self._scandir = os.scandir
        monkeypatch.setattr(folders.os, "scandir", self._counted)
        monkeypatch.setattr(folders, "time", SimpleNamespace(monotonic=lambda: self.now_s))

    def _counted(self, folder: Path) -> object:
        self.count += 1
        return self._scandir(folder)

    def of(self, source: FolderSourceFeed, after: str) -> tuple[str, int]:
        """Read a file; return the offset after it, and how often the folder was looked through."""
        before = self.count
        found = read(source, after)
        return (found[-1].offset if found else ""), self.count - before


def test_a_folder_is_looked_through_only_if_it_may_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans, source = Scans(monkeypatch), FolderSourceFeed(tmp_path)
    for name in "abcde":
        write_rows(tmp_path / f"{name}.parquet", [row(1)])
    assert scans.of(source, "") == ("a.parquet", 1)
    assert scans.of(source, "a.parquet") == ("b.parquet", 1), "another file may be of the same moment"
    scans.now_s += 3.0
    assert scans.of(source, "b.parquet") == ("c.parquet", 1)
    assert scans.of(source, "c.parquet") == ("d.parquet", 0)
    write_rows(tmp_path / "ca.parquet", [row(1)])
    assert scans.of(source, "c.parquet") == ("ca.parquet", 1)
    scans.now_s += 3.0
    assert scans.of(source, "ca.parquet") == ("d.parquet", 1)
    assert scans.of(source, "d.parquet") == ("e.parquet", 0)
    assert [scans.of(source, "e.parquet") for _ in range(3)] == [("", 0)] * 3
    assert scans.of(source, "a.parquet") == ("b.parquet", 1), "another node has read less"
    scans.now_s += 30.0
    assert scans.of(source, "e.parquet") == ("", 1), "not all file systems have times of changes"
    source.close()


def test_only_some_names_of_a_large_folder_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_RUN_MAX", 3)
    scans, source = Scans(monkeypatch), FolderSourceFeed(tmp_path)
    names = [f"{name}.parquet" for name in "abcdefgh"]
    for name in reversed(names):
        write_rows(tmp_path / name, [row(1)])
    scans.of(source, "")
    scans.now_s += 3.0
    found, after = [], ""
    while (offset := scans.of(source, after)[0]) != "":
        found.append(offset)
        after = offset
    assert found == names
    assert scans.count == 1 + 3
    source.close()
