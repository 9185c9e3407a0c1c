"""The files of a store: private from the first byte, of one name, held by one server."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from server.errors import StoreError
from server.store import SqliteStore, backup, compact, restore, sqlite_version
from server.store.mutations import PutObject
from tests.store.conftest import FRAME, an_object, quiet
from tests.support.stored import ids_of

ROOT = Path(__file__).resolve().parents[2]
LATE_MS = 10**9


@pytest.fixture
def wide_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder):
    return {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()}


@pytest.mark.usefixtures("wide_umask")
def test_all_files_are_private_whatever_the_umask(path, tmp_path, monkeypatch):
    """From their first byte: whatever opens a file finds the mode that it has in the end."""
    opened = []
    connect = sqlite3.connect

    def watched(name, *arguments, **options):
        opened.append(modes(tmp_path))
        return connect(name, *arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", watched)
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1, LATE_MS))], 7)
    backup(path, tmp_path / "backup.db", quiet)
    restore(tmp_path / "backup.db", tmp_path / "again.db", quiet)
    last = modes(tmp_path)
    store.close()
    assert {"store.db", "store.db-wal", "store.db-shm", "store.db-mark", "store.db.lock"} < last.keys()
    assert {"backup.db", "again.db", "again.db.lock"} < last.keys()
    for found in (*opened, last):
        assert set(found.values()) <= {0o600}


@pytest.mark.usefixtures("wide_umask")
def test_a_store_that_others_may_read_is_named(path, caplog):
    SqliteStore(path, FRAME).close()
    with caplog.at_level(logging.WARNING):
        SqliteStore(path, FRAME).close()
    assert not caplog.records
    path.chmod(0o640)
    with caplog.at_level(logging.WARNING):
        SqliteStore(path, FRAME).close()
    assert f"has mode 0640: other users can access it and its log; run chmod 600 {path}*" in caplog.text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_backup_of_a_store_that_others_may_read_is_private(path, tmp_path):
    SqliteStore(path, FRAME).close()
    path.chmod(0o644)
    backup(path, tmp_path / "backup.db", quiet)
    assert stat.S_IMODE((tmp_path / "backup.db").stat().st_mode) == 0o600


def test_a_link_in_the_place_of_the_part_is_not_followed(path, tmp_path, monkeypatch):
    """One that was there is removed, one that comes between is not written to."""
    SqliteStore(path, FRAME).close()
    precious = tmp_path / "precious"
    precious.touch()  # to SQLite a new database, which it would fill
    part = tmp_path / "backup.db.part"
    part.symlink_to(precious)
    backup(path, tmp_path / "backup.db", quiet)
    assert not (tmp_path / "backup.db").is_symlink()
    (tmp_path / "backup.db").unlink()

    unlink = Path.unlink

    def raced(self, *, missing_ok=False):
        unlink(self, missing_ok=missing_ok)
        if self == part and not precious.with_name("raced").exists():
            precious.with_name("raced").touch()
            part.symlink_to(precious)

    monkeypatch.setattr(Path, "unlink", raced)
    with pytest.raises(StoreError, match="cannot be copied"):
        backup(path, tmp_path / "backup.db", quiet)
    assert precious.read_bytes() == b""
    assert not (tmp_path / "backup.db").exists()


def test_a_part_that_was_exchanged_gets_no_name(path, tmp_path):
    SqliteStore(path, FRAME).close()
    part = tmp_path / "backup.db.part"

    def exchange(stage, _done, _total):
        if stage == "sink":
            part.rename(tmp_path / "elsewhere")
            part.write_text("theirs")

    with pytest.raises(StoreError, match=r"backup\.db\.part was replaced by another process"):
        backup(path, tmp_path / "backup.db", exchange)
    assert not (tmp_path / "backup.db").exists()


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_store_that_is_served_is_refused_under_another_name(path, tmp_path, link):
    store = SqliteStore(path, FRAME)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "link.db"
    link(path, other)
    message = (
        "another server has it open"
        if link is os.symlink
        else r"has 2 names \(hard links\), must have one"
    )
    works = [lambda: SqliteStore(other, FRAME), lambda: compact(other)]
    if link is os.link:  # a copy would be one without the log
        works.append(lambda: backup(other, tmp_path / "backup.db", quiet))
    for work in works:
        with pytest.raises(StoreError, match=message):
            work()
    store.commit([PutObject(an_object(1, LATE_MS))], 7)
    store.close()
    if link is os.link:
        with pytest.raises(StoreError, match=message):
            SqliteStore(path, FRAME)
        other.unlink()
        other = path
    store = SqliteStore(other, FRAME)
    assert ids_of(store.recover()) == [1]
    store.close()
    assert not (tmp_path / "other" / "link.db-wal").exists(), "its log is where the store is"


def test_the_name_that_a_killed_restore_has_left_is_removed(path, tmp_path):
    """A copy gets its name before its part loses its own."""
    SqliteStore(path, FRAME).close()
    backup(path, tmp_path / "again.db", quiet)
    os.link(tmp_path / "again.db", tmp_path / "again.db.part")
    SqliteStore(tmp_path / "again.db", FRAME).close()
    assert not (tmp_path / "again.db.part").exists()
    (tmp_path / "again.db.part").touch()  # of a copy that is in progress
    SqliteStore(tmp_path / "again.db", FRAME).close()
    assert (tmp_path / "again.db.part").exists()


OTHER = """
import sys
from pathlib import Path
from server.errors import StoreError
from server.store import SqliteStore, files
from tests.store.conftest import FRAME
Path(f"{sys.argv[1]}.lock").rename(f"{sys.argv[1]}.gone")  # as if it were in another folder
try:
    SqliteStore(sys.argv[1], FRAME)
except StoreError as error:
    print(error)
"""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such locks would be those of SQLite")
def test_the_lock_is_on_the_file_not_only_beside_it(path):
    """Mounted twice, a file has one inode and two folders."""
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1, LATE_MS))], 7)
    run = [sys.executable, "-c", OTHER, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "another server has it open" in done.stdout
    store.close()


@pytest.mark.processes
def test_a_file_that_is_held_can_be_read_and_copied_by_others(path, tmp_path):
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1, LATE_MS))], 7)
    run = [sys.executable, "-m", "cli", "store", "backup", str(path), str(tmp_path / "b.db")]
    subprocess.run(run, capture_output=True, check=True, cwd=ROOT)
    shutil.copy(path, tmp_path / "copy")
    store.close()
    copy = SqliteStore(tmp_path / "b.db", FRAME)
    assert ids_of(copy.recover()) == [1]
    copy.close()


@pytest.mark.parametrize(
    ("version", "has_bug"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), False),
        ((4, 0, 0), False),
    ],
)
def test_versions_of_sqlite_with_the_reset_bug_are_named(version, has_bug, monkeypatch, caplog):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    monkeypatch.setattr(sqlite3, "sqlite_version", ".".join(map(str, version)))
    with caplog.at_level(logging.INFO):
        sqlite_version.log_sqlite_version()
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage().startswith(f"SQLite {sqlite3.sqlite_version}")
    assert ("WAL-reset bug" in record.getMessage()) is has_bug
