"""What a simulation does with files: the same on this machine's disk and on a file system of Spark's."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from feeds.storage import StorageError, Stored
from simulator.errors import StageError
from simulator.files import files_at, parquet_files
from simulator.stages import Stages, read_mark, row_count
from simulator.tables import FILE_ROWS, slice_name, write_slices, write_table

TABLE = pa.table({"x": range(5)})


@pytest.fixture(params=["disk", "file:", "viewfs:"])
def root(request, view, spark, tmp_path):
    (tmp_path / "own").mkdir()
    if request.param == "disk":
        return tmp_path / "own"
    return Stored(spark, f"{view}/own" if request.param == "viewfs:" else (tmp_path / "own").as_uri())


def test_files_and_folders(root, tmp_path):
    folder = files_at(root / "a" / "b")
    assert (folder.exists(), folder.is_folder(), folder.files()) == (False, False, {})
    folder.remove()
    folder.make_folder()
    folder.make_folder()
    assert folder.is_folder()
    (folder / "two").replace(b"12")
    (folder / "two").replace(b"1234")
    (folder / "c").make_folder()
    (folder / "c" / "one").replace(b"")
    assert files_at(root).files() == {"a/b/c/one": 0, "a/b/two": 4}
    assert (tmp_path / "own" / "a" / "b" / "two").read_bytes() == b"1234"
    (folder / "two").move(str(folder / "three"))
    assert (folder / "three").read() == b"1234"
    assert not (folder / "two").exists()
    with pytest.raises(OSError, match="two"):
        (folder / "two").read()
    with pytest.raises(OSError, match="two"):
        (folder / "two").opened()
    (folder / "three").remove()
    files_at(root / "a").remove()
    assert files_at(root).files() == {}


def test_a_file_is_read_from_anywhere_in_it(root):
    data = bytes(range(256)) * 10_000
    file = files_at(root / "file")
    file.replace(data)
    with file.opened() as source:
        assert source.seek(-5, 2) == len(data) - 5
        assert source.read(10) == data[-5:]
        assert source.read(10) == b""
        source.seek(1_000_000)
        assert source.read(1_500_000) == data[1_000_000:2_500_000]
        assert source.tell() == 2_500_000
    assert source.closed


def test_a_file_that_is_there_is_not_moved_upon(view, spark):
    folder = Stored(spark, view)
    for name in ("a", "b"):
        (folder / name).replace(name.encode())
    with pytest.raises(StorageError, match="AlreadyExists"):
        (folder / "a").move(str(folder / "b"))


def test_a_large_table_is_several_files_in_order(root, monkeypatch):
    monkeypatch.setattr("simulator.tables.FILE_ROWS", 2)
    assert FILE_ROWS > 2
    write_table(TABLE, root / "table")
    parts = parquet_files(root / "table")
    assert [str(part).rpartition("/")[2] for part in parts] == [f"part-0000{i}.parquet" for i in range(3)]
    assert row_count(root / "table") == 5
    found = []
    for part in parts:
        with part.opened() as source:
            found.append(pq.read_table(source))
    assert pa.concat_tables(found).equals(TABLE)
    write_table(TABLE.slice(0, 0), root / "empty")
    assert row_count(root / "empty") == 0
    assert len(parquet_files(root / "empty")) == 1


def test_slices_have_the_names_under_which_they_are_read(spark, tmp_path):
    slices = [0, 7, 99_999, 100_000, 123_456]
    rows = spark.createDataFrame([(2 * number + 1,) for number in slices], "tick long")
    assert write_slices(rows, 2, tmp_path / "out") == len(slices)
    found = {path.name for path in (tmp_path / "out").glob("slice=*")}
    assert found == {slice_name(number) for number in slices}


def never(_folder):
    raise AssertionError("it is made again")


def test_a_stage_is_complete_when_it_has_its_mark(root):
    mark = Stages(root).run("table", {"seed": 1}, lambda folder: write_table(TABLE, folder))
    assert (mark.rows, mark.files) == (5, 1)
    assert Stages(root).run("table", {"seed": 1}, never) == mark == read_mark(root, "table")
    files_at(root / "stages" / "table.json").replace(b"{")
    with pytest.raises(AssertionError, match="again"):
        Stages(root).run("table", {"seed": 1}, never)
    assert not files_at(root / "table").exists()

    def fail(folder):
        write_table(TABLE, folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(StageError, match=r"table cannot be written: .*No space left"):
        Stages(root).run("table", {"seed": 1}, fail)
    assert list(files_at(root).files()) == ["stages/table.started"], "so that the next run may replace it"
    assert Stages(root).run("table", {"seed": 1}, lambda folder: write_table(TABLE, folder)).rows == 5
