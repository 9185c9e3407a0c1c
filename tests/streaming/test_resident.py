"""Values whose arrays lie in files: taken, grown, kept, lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from index.tables import growth
from index.tables.growth import longer, rooms_of
from streaming.tasks import resident as module
from streaming.tasks.resident import Note, Resident


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of a kilobyte be large."""
    monkeypatch.setattr(growth, "_LARGE_BYTES", 1_000)
    monkeypatch.setattr(growth, "affordable_bytes", lambda: 1 << 24)
    monkeypatch.setattr(module, "_LARGE_BYTES", 1_000)


def _note(version: int) -> Note:
    return Note(version, b"digest", b"answer")


def test_what_is_kept_is_taken_with_its_changes(tmp_path: Path) -> None:
    for version in range(5):
        resident = Resident(tmp_path / "one")
        with resident.locked(), rooms_of(resident.room):
            note = resident.note()
            value = resident.take() if note else {"few": np.zeros(3), "many": np.zeros(100)}
            assert (note.version if note else 0) == version
            assert value["few"][0] == value["many"].sum() == version
            value["few"][0] += 1
            value["many"] = longer(value["many"], len(value["many"]) + 100)
            assert len(value["many"]) >= 200
            value["many"][version] = 1
            resident.keep(value, _note(version + 1))


def test_an_array_grows_in_its_file_without_moving(tmp_path: Path) -> None:
    resident = Resident(tmp_path / "one")
    with resident.locked(), rooms_of(resident.room):
        resident.keep({"many": longer(np.zeros(10, dtype=np.int64), 1_000)}, _note(1))
        files = {path.name for path in (tmp_path / "one").iterdir()}
    again = Resident(tmp_path / "one")
    with again.locked(), rooms_of(again.room):
        value = again.take()
        address = value["many"].__array_interface__["data"][0]
        value["many"] = longer(value["many"], 100_000)
        assert value["many"].__array_interface__["data"][0] == address
        value["many"][-1] = 7
        again.keep(value, _note(2))
    assert {path.name for path in (tmp_path / "one").iterdir()} == files
    last = Resident(tmp_path / "one")
    with last.locked():
        assert last.take()["many"][-1] == 7
    # A file has room for much, and takes what was written: a huge page, where there are such.
    (array,) = (tmp_path / "one").glob("array-*")
    assert array.stat().st_size == 1 << 24
    assert array.stat().st_blocks * 512 <= 1 << 21


def test_a_value_that_was_taken_and_not_kept_is_lost(tmp_path: Path) -> None:
    resident = Resident(tmp_path / "one")
    with resident.locked():
        resident.keep({"many": np.zeros(1_000)}, _note(1))
        assert resident.note() == _note(1)
        resident.take()
        assert resident.note() is None
        resident.discard()
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["lock"]


def test_arrays_that_are_replaced_leave_no_files(tmp_path: Path) -> None:
    resident = Resident(tmp_path / "one")
    with resident.locked():
        for version in range(4):
            resident.keep({"many": np.full(1_000, version)}, _note(version))
            files = list((tmp_path / "one").glob("array-*"))
            assert len(files) == 1
            assert resident.take()["many"][0] == version
            resident.keep({"many": np.full(1_000, version)}, _note(version))
