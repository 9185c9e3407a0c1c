"""Values whose arrays lie in files: taken, grown, kept, lost."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.tables import growth
from index.tables.growth import longer, rooms_of
from safe_region.earth.frame import Area
from streaming.distribution import distribution_of
from streaming.own_folder import OwnFolderError, own_folder
from streaming.plan import Plan
from streaming.program import program_digest
from streaming.tasks import shared_arrays as module
from streaming.tasks.shared_arrays import LostError, MemoryFullError, Note, SharedArrays
from streaming.window_size import WindowSize


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of a kilobyte be large."""
    monkeypatch.setattr(growth, "_LARGE_BYTES", 1_000)
    monkeypatch.setattr(growth, "affordable_bytes", lambda: 1 << 24)
    monkeypatch.setattr(module, "_LARGE_BYTES", 1_000)


def _note(version: int) -> Note:
    return Note(version, b"digest", b"answer")


def test_a_stored_value_is_read_with_its_changes(tmp_path: Path) -> None:
    for version in range(5):
        shared = SharedArrays(tmp_path / "one")
        with shared.locked(), rooms_of(shared.room):
            note = shared.note()
            value = shared.take() if note else {"few": np.zeros(3), "many": np.zeros(100)}
            assert (note.version if note else 0) == version
            assert value["few"][0] == value["many"].sum() == version
            value["few"][0] += 1
            value["many"] = longer(value["many"], len(value["many"]) + 100)
            assert len(value["many"]) >= 200
            value["many"][version] = 1
            shared.keep(value, _note(version + 1))


def test_an_array_grows_in_its_file_without_moving(tmp_path: Path) -> None:
    shared = SharedArrays(tmp_path / "one")
    with shared.locked(), rooms_of(shared.room):
        shared.keep({"many": longer(np.zeros(10, dtype=np.int64), 1_000)}, _note(1))
        files = {path.name for path in (tmp_path / "one").iterdir()}
    again = SharedArrays(tmp_path / "one")
    with again.locked(), rooms_of(again.room):
        value = again.take()
        address = value["many"].__array_interface__["data"][0]
        value["many"] = longer(value["many"], 100_000)
        assert value["many"].__array_interface__["data"][0] == address
        value["many"][-1] = 7
        again.keep(value, _note(2))
    assert {path.name for path in (tmp_path / "one").iterdir()} == files
    last = SharedArrays(tmp_path / "one")
    with last.locked():
        assert last.take()["many"][-1] == 7
    # A file has room for much, and takes what was written: a huge page, where there are such.
    (array,) = (tmp_path / "one").glob("array-*")
    assert array.stat().st_size == 1 << 24
    assert array.stat().st_blocks * 512 <= 1 << 21


def test_a_value_that_was_taken_and_not_kept_is_lost(tmp_path: Path) -> None:
    shared = SharedArrays(tmp_path / "one")
    with shared.locked():
        shared.keep({"many": np.zeros(1_000)}, _note(1))
        assert shared.note() == _note(1)
        shared.take()
        assert shared.note() is None
        shared.discard()
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["lock"]


def test_arrays_that_are_replaced_leave_no_files(tmp_path: Path) -> None:
    shared = SharedArrays(tmp_path / "one")
    with shared.locked():
        for version in range(4):
            shared.keep({"many": np.full(1_000, version)}, _note(version))
            files = list((tmp_path / "one").glob("array-*"))
            assert len(files) == 1
            assert shared.take()["many"][0] == version
            shared.keep({"many": np.full(1_000, version)}, _note(version))


class _Evil:
    def __reduce__(self) -> Any:
        return exec, ("raise ValueError('ran')",)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\0" * 100,
        pickle.dumps((1, b"", b"")),
        pickle.dumps(_Evil()),
        b'[1,0,"","",0,5]\n{}',
        b'[1,0,"","",99999999999,5]\n{}',
        b'[1,0,"",7,0,2]\n{}',
        b'[2,0,"","",0,2]\n{}',
        b"[" * 900,
    ],
)
def test_a_head_that_is_none_is_no_value(tmp_path: Path, head: bytes) -> None:
    shared = SharedArrays(tmp_path / "one")
    with shared.locked():
        (tmp_path / "one" / "head").write_bytes(head)
        note = shared.note()
        assert note is None or not note.answer
        with pytest.raises(LostError):
            shared.take()
        shared.keep([1], _note(1))
        assert shared.take() == [1]


def test_a_folder_that_is_not_ours_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    assert own_folder(own) == own == own_folder(own)
    assert own.stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(own)
    with pytest.raises(OwnFolderError, match="link must be a folder, not a link"):
        own_folder(tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(OwnFolderError, match="file must be a folder"):
        own_folder(tmp_path / "file")
    own.chmod(0o750)
    with pytest.raises(OwnFolderError, match="own has mode 0750, must have 0700"):
        own_folder(own)
    own.chmod(0o700)
    tmp_path.chmod(0o777)
    with pytest.raises(OwnFolderError, match="is writable by all users, must be sticky"):
        own_folder(own)
    tmp_path.chmod(0o1777)
    assert own_folder(own) == own
    tmp_path.chmod(0o700)
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(OwnFolderError, match="belongs to user"):
        own_folder(own)


def test_files_of_another_user_are_not_read(tmp_path: Path) -> None:
    """As in /dev/shm, before a job comes: its folder, with a head that runs something."""
    plan = a_plan()
    there = tmp_path / plan.run / program_digest() / "0"
    there.mkdir(parents=True)
    (there / "head").write_bytes(pickle.dumps(_Evil()))
    for one in (tmp_path / plan.run, there.parent, there):
        one.chmod(0o777)
    with pytest.raises(OwnFolderError, match="has mode 0777, must have 0700"):
        plan.folder(tmp_path)


def test_the_name_of_a_run_is_a_secret(tmp_path: Path) -> None:
    plan = a_plan()
    assert Plan.from_json(plan.as_json(), tmp_path) == plan
    assert len(plan.run) > 32, "the name cannot be guessed"
    assert a_plan().run != plan.run


def a_plan() -> Plan:
    return Plan.begin(
        distribution_of("hashing", 1, None),
        area=Area(12.5, 55.6, 12.65, 55.75),
        window=WindowSize(10, 0),
        mechanism="hashing",
        partitions=1,
        keys=(0,),
        subscription_index="sq-plus-tree",
    )


def test_an_array_occupies_its_written_bytes(tmp_path: Path) -> None:
    shared = SharedArrays(tmp_path / "one")
    with shared.locked(), rooms_of(shared.room):
        many = longer(np.zeros(10, dtype=np.int64), 10_000)
        many[:] = 1
        file = next(path for path in (tmp_path / "one").iterdir() if path.name.startswith("array-"))
        assert file.stat().st_size == 1 << 24
        assert many.nbytes <= shared.occupied_bytes < 1 << 24
        shared.keep(many, _note(1))


@pytest.mark.parametrize("advice", [module._MADV_POPULATE_WRITE, 9_999])  # noqa: SLF001 - of the system
def test_an_array_has_its_memory_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, advice: int
) -> None:
    """Also on a system that does not know the advice, as Linux before 5.14."""
    monkeypatch.setattr(module, "_MADV_POPULATE_WRITE", advice)
    shared = SharedArrays(tmp_path / "one")
    with shared.locked(), rooms_of(shared.room):
        many = longer(np.zeros(10, dtype=np.int64), 10_000)
        assert many.nbytes <= shared.occupied_bytes < 1 << 24
        assert not many.any()
        shared.keep(longer(many, 20_000), _note(1))
        assert shared.occupied_bytes >= 160_000


def test_memory_that_is_too_small_is_named_before_anything_is_taken(tmp_path: Path) -> None:
    shared = SharedArrays(tmp_path / "job" / "one")
    (tmp_path / "job").mkdir(mode=0o700)
    with shared.locked():
        shared.require_free(0)
        with pytest.raises(MemoryFullError, match=rf"^{tmp_path} on .* MiB free, must have [0-9]+ MiB"):
            shared.require_free(1 << 60)


@pytest.mark.processes
def test_a_task_ends_with_an_error_when_memory_is_full_and_its_repetition_is_exact(
    tmp_path: Path,
) -> None:
    mounted = f"mount -t tmpfs -o size=64m,mode=0700 tmpfs '{tmp_path}'"
    alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*alone, mounted], check=False).returncode:
        pytest.skip("needs a file system of its own in memory: Linux, root or user namespaces")
    program = f"'{sys.executable}' -m tests.streaming.full_memory '{tmp_path}'"
    found = subprocess.run(
        [*alone, f"{mounted} && exec {program}"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    full, batches = map(int, found.stdout.split(" of "))
    assert 0 < full < batches
