"""Jobs whose folders lie on a file system that only Spark can open, and files as the driver sees them."""

import errno
import json
import os
import re
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from feeds.causes import cause_of
from feeds.schemas import FEEDS
from feeds.storage import StorageError, Stored, open_resolved
from streaming.claim import Claim, TakenOverError
from streaming.job import start
from streaming.parameters import ParameterError
from streaming.rebalance import rebalance
from streaming.result import lists as lists_module
from streaming.result import manifest
from streaming.result.audit import audit
from streaming.result.lists import compact, lists
from streaming.result.manifest import ResultError, manifest_of, read_batch
from streaming.result.sink import Batch, Sink
from streaming.result.snapshots import Snapshots
from tests.streaming.spark.test_job import COUNT, Job
from tests.support.stream_results import complete, read_feed, read_files


@pytest.mark.parametrize("mechanism", ["hashing", pytest.param("prefix", marks=pytest.mark.slow)])
def test_all_folders_of_a_job_may_lie_on_another_file_system(mechanism, view, tmp_path, spark):
    job = Job(tmp_path, spark, COUNT, mechanism=mechanism, partitions=2)
    folders = {name: f"{view}/{name}" for name in ("messages", "subscriptions", "out", "checkpoint")}
    job.parameters = job.parameters.changed(**folders)
    assert not Path(folders["messages"]).exists()
    job.add(2)
    job.run()
    job.add(1)
    job.run()
    job.parameters = job.parameters.changed(partitions=3)
    assert rebalance(job.parameters, spark).after == 3
    job.add(1)
    job.run()
    found = audit(job.parameters.checkpoint, job.parameters.out, spark, 100)
    assert found.mismatches == []
    assert found.lists > 10
    assert len(read_files(tmp_path / "out", "messages")) == job.files


def test_a_folder_that_is_not_there_is_named(tmp_path, spark):
    job = Job(tmp_path, spark)
    for name in ("messages", "subscriptions"):
        with pytest.raises(ParameterError, match=rf"{name} is .*nowhere, must be an existing folder"):
            start(job.parameters.changed(**{name: tmp_path / "nowhere"}), spark)
    with pytest.raises(ParameterError, match=r"memory is .*nowhere, must be an existing folder"):
        start(job.parameters.changed(memory=tmp_path / "nowhere"), spark)


def test_files_are_whole_or_not_there_and_private(view, tmp_path, spark):
    places = (tmp_path / "own", "File exists$"), (f"{view}/own2", "FileAlreadyExistsException")
    for where, exists in places:
        folder = Stored(spark, where)
        file = folder / "a.json"
        assert (file.exists(), folder.is_folder(), folder.names()) == (False, False, [])
        with pytest.raises(StorageError, match=r"a\.json: FileNotFoundException"):
            file.read()
        file.create(b"first")
        with pytest.raises(StorageError, match=rf"a\.json: {exists}"):
            file.create(b"second")
        assert file.read() == b"first"
        file.replace(b"third\x00\xff")
        assert (file.read(), folder.names()) == (b"third\x00\xff", ["a.json"])
        system, path = open_resolved(file.resolved())
        with system.open_input_stream(path) as stream:
            assert stream.read() == b"third\x00\xff"
        assert Path(path).stat().st_mode & 0o777 == 0o600
        assert Path(path).parent.stat().st_mode & 0o777 == 0o700
        assert [one.name for one in Path(path).parent.iterdir() if one.name[0] != "."] == ["a.json"]
        folder.remove()
        assert not folder.exists()
        folder.remove()


def test_a_local_file_is_created_where_there_are_no_hard_links(tmp_path, spark, monkeypatch):
    def link(source, _target):
        raise PermissionError(errno.EPERM, "Operation not permitted", source)

    monkeypatch.setattr(os, "link", link)
    file = Stored(spark, tmp_path / "own" / "a.json")
    file.create(b"first")
    with pytest.raises(StorageError, match=r"a\.json: FileAlreadyExistsException"):
        file.create(b"second")
    assert file.read() == b"first"
    assert [one.name for one in (tmp_path / "own").iterdir()] == ["a.json"]


def test_a_file_system_that_is_not_there_is_named(spark):
    with pytest.raises(StorageError, match="nofs://there/x"):
        Stored(spark, "nofs://there/x")
    with pytest.raises(StorageError, match=r"^nofs:x: .*Relative path in absolute URI"):
        Stored(spark, "nofs:x")


def test_a_driver_that_was_taken_over_writes_nothing_that_counts(tmp_path, spark):
    checkpoint = Stored(spark, tmp_path / "checkpoint")
    first = Claim(checkpoint)
    first.take()
    first.require()
    second = Claim(checkpoint)
    second.take()
    second.require()
    assert first.name != second.name
    with pytest.raises(TakenOverError, match="another driver has claimed this checkpoint"):
        first.require()


@pytest.mark.slow
def test_a_job_with_a_claimed_checkpoint_ends_at_its_next_batch(tmp_path, spark):
    job = Job(tmp_path, spark)
    job.add(1)
    query = start(job.parameters.changed(once=False), spark)
    try:
        query.processAllAvailable()
        Claim(Stored(spark, job.parameters.checkpoint)).take()
        job.add(1)
        with pytest.raises(Exception, match="another driver has claimed") as caught:
            query.processAllAvailable()
        assert re.match(r"(\w+\.)*TakenOverError: another driver has claimed", cause_of(caught.value))
    finally:
        query.stop()
    assert complete(job.parameters.out) == [0]
    # It may have seen one of the two files alone.
    last = job.run()[-1].number
    for batch, file in ((0, 0), (last, 1)):
        job.require_exact(batch, file)


@pytest.mark.slow
def test_results_are_the_same_from_a_snapshot(tmp_path, spark):
    job = Job(tmp_path, spark)
    job.add(2)
    job.run()
    before = rows(lists(job.parameters.out, spark))
    batch, count, removed = compact(job.parameters.out, spark, removes=False)
    assert (batch, count, removed) == (1, len(before), 0)
    assert rows(lists(job.parameters.out, spark)) == before
    job.require_exact(0)
    assert compact(job.parameters.out, spark, removes=True) == (1, len(before), 2)
    assert rows(lists(job.parameters.out, spark)) == before
    with pytest.raises(ResultError, match="after batch 0 are no longer available"):
        lists(job.parameters.out, spark, 0)
    job.definition.apply(*feed_rows(job, 1))
    job.add(1)
    job.run()
    job.require_exact(2)
    assert audit(job.parameters.checkpoint, job.parameters.out, spark, 100).mismatches == []


@pytest.mark.slow
def test_lists_reads_the_manifests_of_later_batches_only(tmp_path, spark, monkeypatch):
    job, read = Job(tmp_path, spark), []

    def read_batch(out, number):
        read.append(number)
        return manifest.read_batch(out, number)

    monkeypatch.setattr(lists_module, "read_batch", read_batch)
    job.add(3)
    job.run()
    before = rows(lists(job.parameters.out, spark))
    assert read == [0, 1, 2]
    compact(job.parameters.out, spark, removes=False)
    job.add(1)
    job.run()
    for number, needed in ((2, []), (3, [3]), (1, [0, 1])):
        read.clear()
        found = rows(lists(job.parameters.out, spark, number))
        assert read == needed
        assert number != 2 or found == before
    for number in (-1, 4):
        with pytest.raises(ResultError, match=f"batch is {number}, must be 0 to 3"):
            lists(job.parameters.out, spark, number)


@pytest.mark.slow
def test_manifests_and_refused_rows_are_removed_with_the_changes_and_the_job_resumes(tmp_path, spark):
    job = Job(tmp_path, spark, mechanism="prefix", partitions=2)
    for number in range(4):
        job.add(1)
        wrong = pa.Table.from_pylist([{"action": "shout"}], FEEDS["messages"])
        pq.write_table(wrong, tmp_path / "messages" / f"wrong{number}.parquet")
        job.run(job.parameters.changed(files_per_batch=2))
    out, last = job.parameters.out, complete(job.parameters.out)[-1]
    held, refused = rows(lists(out, spark)), [path.name for path in (out / "refused").iterdir()]
    assert len(refused) == 4
    assert compact(out, spark, removes=True)[:2] == (last, len(held))
    assert complete(out) == [last - 1, last]
    kept = {f"batch={number:08d}" for number in complete(out)}
    assert {path.name for path in (out / "refused").iterdir()} == {*refused} & kept
    assert list((out / "changes").iterdir()) == []
    with pytest.raises(ResultError, match=f"and those before {last - 1} were removed"):
        audit(job.parameters.checkpoint, out, spark, 10)
    for path in (job.parameters.checkpoint / "spark" / "commits").glob(f"*{last}*"):
        path.unlink()  # killed before it was noted
    job.run()
    assert rows(lists(out, spark)) == held
    job.add(1)
    job.run()
    for file in range(4):
        job.apply(file)
    job.require_exact(complete(out)[-1], 4)


@pytest.mark.slow
def test_changes_that_are_removed_while_they_are_listed_are_an_error(tmp_path, spark, monkeypatch):
    job = Job(tmp_path, spark)
    job.add(2)
    job.run()
    last = Snapshots.last

    def last_and_then_removed(snapshots, batch):
        found = last(snapshots, batch)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Snapshots, "last", last)
            compact(job.parameters.out, spark, removes=True)
        return found

    monkeypatch.setattr(Snapshots, "last", last_and_then_removed)
    with pytest.raises(ResultError, match="after batch 1 are no longer available"):
        lists(job.parameters.out, spark)


def test_later_snapshots_know_of_changes_that_were_removed(tmp_path, spark):
    snapshots = Snapshots(Stored(spark, tmp_path), spark)
    none = snapshots.read(-1)
    assert snapshots.removed() == -1
    snapshots.write(none, 3)
    snapshots.remove_before(3)
    snapshots.write(none, 5)
    assert snapshots.removed() == 3
    snapshots.remove_before(5)
    snapshots.write(none, 5)
    assert snapshots.removed() == 5


def test_results_have_the_modes_of_hadoops_umask_and_the_checkpoint_is_private(tmp_path, spark):
    job = Job(tmp_path, spark)
    job.add(1)
    job.run()
    compact(job.parameters.out, spark, removes=False)
    paths = [tmp_path / "out", *(tmp_path / "out").rglob("*")]
    assert {path.name for path in paths} >= {"batches", "changes", "snapshots", "00000000.json"}
    for path in paths:
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path
    checkpoint = tmp_path / "checkpoint"
    assert checkpoint.stat().st_mode & 0o777 == 0o700
    assert (checkpoint / "plan.json").stat().st_mode & 0o777 == 0o600


def test_a_local_file_is_there_at_all_times_while_it_is_replaced(tmp_path, spark):
    path = tmp_path / "own" / "a.json"
    file = Stored(spark, path)
    file.create(b"0")
    absences, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            absences.extend(["absent"] if not path.exists() else [])

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for number in range(1, 200):
            file.replace(b"%d" % number)
    finally:
        stop.set()
        thread.join()
    assert absences == []
    assert file.read() == b"199"
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="file/b"):
        Stored(spark, tmp_path / "file" / "b").replace(b"")


def test_the_newer_driver_goes_on_if_the_older_one_has_just_completed_the_batch(
    tmp_path, spark, monkeypatch
):
    out, claim = Stored(spark, tmp_path / "out"), Claim(Stored(spark, tmp_path / "checkpoint"))
    claim.take()
    noted, done = [], []

    class Exchanged:
        def complete(self, number, files):
            noted.append((number, files))

    def written(_sink, _answers, number):
        older = {"batch": number, "driver": "older", "feedback_files": ["older's"]}
        manifest_of(out, number).create(json.dumps(older).encode())
        return Batch(number, {}, []), older | {"driver": "newer", "feedback_files": ["newer's"]}

    monkeypatch.setattr(Sink, "_written", written)
    sink = Sink(out, claim, done.append, Exchanged())
    sink(spark.range(1), 7)
    assert [batch.number for batch in done] == [7]
    sink(spark.range(1), 7)  # Spark repeats it
    assert noted == [(7, ["older's"])] * 2
    assert read_batch(out, 7)["driver"] == "older"


def rows(frame):
    return sorted((row.subscription_id, row.object_id, row.score) for row in frame.collect())


def feed_rows(job, number):
    """What a file of each feed has, for the definition."""
    messages, subscriptions = (
        read_feed(job.folder / name / f"{number:03d}.parquet", name)
        for name in ("messages", "subscriptions")
    )
    return subscriptions, messages


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "total"), [("hashing", "apply_us"), ("keyword", "match_us")])
def test_manifests_have_the_work_of_partitions_or_of_their_replicas(tmp_path, spark, mechanism, total):
    job = Job(tmp_path, spark, mechanism=mechanism, partitions=3)
    job.add(1)
    (batch, *_) = job.run()
    about = json.loads((tmp_path / "out" / "batches" / "00000000.json").read_text())
    assert about["loads_us"] == batch.loads_us
    assert len(about["loads_us"]) == 3
    assert sum(about["loads_us"]) == about[total] > 0
