"""The process that reads files: what ends it costs a file, and never the server."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from feeds.bounds import UnreadableError
from server.bridge import file_reader
from server.bridge.file_reader import FileReader
from server.bridge.folder import FolderSourceFeed
from tests.support.bad_files import row, write_rows

pytestmark = pytest.mark.processes

_DYING = file_reader.WORKER.replace(
    "from server.bridge.reader_worker import main;",
    "from server.bridge import reader_worker; from server.bridge.reader_worker import main; "
    "import os, signal; "
    "reader_worker.chunks = lambda file: os.kill(os.getpid(), signal.SIGABRT);",
)
"""A reader that ends as one does whose library calls `abort`."""


@pytest.fixture
def reader():
    found = FileReader()
    yield found
    found.close()


def count(reader: FileReader, path: Path) -> int:
    with path.open("rb") as file:
        return sum(rows.num_rows for rows in reader.chunks(file))


def test_one_process_reads_many_files(reader: FileReader, tmp_path: Path) -> None:
    write_rows(tmp_path / "a", [row(one) for one in range(4_500)])
    assert count(reader, tmp_path / "a") == 4_500
    worker = reader.worker
    assert worker is not None
    (tmp_path / "b").write_bytes(b"no Parquet at all")
    with pytest.raises(UnreadableError, match="it is not a Parquet file"):
        count(reader, tmp_path / "b")
    assert count(reader, tmp_path / "a") == 4_500
    assert reader.worker is worker


def test_a_file_that_ends_the_process_costs_one_file(
    reader: FileReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "b.parquet", [row(1)])
    with monkeypatch.context() as patch:
        patch.setattr(file_reader, "WORKER", _DYING)
        with pytest.raises(UnreadableError, match="the reader process terminated while it read the file"):
            count(reader, tmp_path / "b.parquet")
        source = FolderSourceFeed(tmp_path)
        (found,) = source.next("files", "", 0.0)
        assert "is set aside as 'b.parquet.refused': the reader process terminated" in found.passed_over
        source.close()
    assert count(reader, tmp_path / "b.parquet.refused") == 1


def test_a_file_that_is_left_in_the_middle_is_no_trouble_to_the_next(
    reader: FileReader, tmp_path: Path
) -> None:
    write_rows(tmp_path / "a", [row(one) for one in range(5_000)])
    with (tmp_path / "a").open("rb") as file:
        rows = reader.chunks(file)
        assert next(rows).num_rows == 2_000
        rows.close()
    assert count(reader, tmp_path / "a") == 5_000


def test_closing_the_source_blames_no_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "b.parquet", [row(one) for one in range(5_000)])
    source = FolderSourceFeed(tmp_path)
    found = source.next("files", "", 0.0)
    next(found)
    source.close()
    with pytest.raises(InterruptedError):
        list(found)
    assert (tmp_path / "b.parquet").exists()


def test_a_process_that_cannot_be_started_blames_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "b.parquet", [row(1)])
    source = FolderSourceFeed(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(file_reader, "WORKER", "raise SystemExit(1)")
        with pytest.raises(BlockingIOError) as failed:
            list(source.next("files", "", 0.0))
    assert failed.value.errno == errno.EAGAIN
    assert len(next(source.next("files", "", 0.0)).rows) == 1
    source.close()


def test_the_process_ends_with_the_server_and_by_no_signal_to_all(
    reader: FileReader, tmp_path: Path
) -> None:
    write_rows(tmp_path / "a", [row(1)])
    assert count(reader, tmp_path / "a") == 1
    worker = reader.worker
    assert worker is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(worker.process.pid, number)
    assert count(reader, tmp_path / "a") == 1
    assert reader.worker is worker
    worker.socket.close()  # as when the server is no more
    assert worker.process.wait(60) == 0
