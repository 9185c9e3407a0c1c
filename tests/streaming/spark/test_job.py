import json
import shutil
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from feeds.schemas import FEEDS, WITHOUT_PAYLOADS
from feeds.storage import Stored
from safe_region.scoring.idf import IdfTable
from streaming import planning
from streaming.arrays import reading
from streaming.arrays.changes import ROWS
from streaming.job import start
from streaming.parameters import StreamParameters
from streaming.plan import AHEAD_MS, PlanError
from streaming.result import audit as audit_module
from streaming.result.audit import Definition, audit
from streaming.result.lists import lists
from streaming.result.manifest import folder_of
from streaming.window_size import WindowSize
from tests.streaming.feed import AREA, FRAME, RandomFeed
from tests.streaming.test_partition import require_same
from tests.support.amounts import SEED
from tests.support.stream_results import (
    changes_of,
    forget_manifest,
    manifest,
    manifest_path,
    plan_of,
    read_feed,
    read_files,
    refused_of,
)

WEIGHTS = {"word0": 0.5, "word3": 2.0, "word7": 4.0}
COUNT, TIME = WindowSize(count=60), WindowSize(duration_ms=4_000)


class Job:
    """A job, and the feeds that it reads."""

    def __init__(self, folder, spark, window=COUNT, *, booleans=False, **chosen):
        self.folder, self.spark = folder, spark
        self.feed = RandomFeed(SEED, WEIGHTS, booleans=booleans)
        self.definition = Definition(FRAME, window, IdfTable(WEIGHTS).weight)
        self.files = 0
        for name in (*FEEDS, "memory"):
            (folder / name).mkdir()
        (folder / "idf.json").write_text(IdfTable(WEIGHTS).as_json())
        self.parameters = StreamParameters(
            **{name: folder / name for name in ("messages", "subscriptions", "out", "checkpoint")},
            area=AREA,
            window=window,
            idf=folder / "idf.json",
            files_per_batch=1,
            once=True,
            memory=folder / "memory",
            **chosen,
        )

    def add(self, count):
        """Add files to the feeds, each of which makes a batch."""
        for number in range(self.files, self.files + count):
            self.feed.write(self.folder, number, 8, 40)
        self.files += count

    def has_read_all(self):
        """Whether batches have read every file of both feeds."""
        return all(len(read_files(self.parameters.out, feed)) == self.files for feed in FEEDS)

    def run(self, parameters=None):
        """Let the job read what there is; return the batches."""
        batches = []
        query = start(parameters or self.parameters, self.spark, batches.append)
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return batches

    def apply(self, file):
        """Let the definition have a file of each feed."""
        rows = [read_feed(self.folder / name / f"{file:03d}.parquet", name) for name in FEEDS]
        self.definition.apply(rows[1], rows[0])

    def require_exact(self, batch, file=None):
        """Compare all results behind a batch with the definition: batch by batch."""
        self.apply(batch if file is None else file)
        found = {}
        for row in lists(self.parameters.out, self.spark, batch).collect():
            assert row.object_id not in found.setdefault(row.subscription_id, {})
            found[row.subscription_id][row.object_id] = row.score
        require_same(found, self.definition.results(self.definition.subscriptions))


def require_private(memory):
    """What lies in memory is for one user alone, and nothing of it is run when it is read."""
    folders = [path for path in memory.rglob("*") if path.is_dir()]
    assert len(folders) >= 3
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    heads = list(memory.rglob("head"))
    assert heads
    assert all(json.loads(head.read_bytes().partition(b"\n")[0])[0] == 1 for head in heads)


def test_results_are_the_definitions_after_every_batch_of_a_restarted_job(tmp_path, spark):
    job = Job(tmp_path, spark, partitions=2)
    job.add(2)
    assert [one.number for one in job.run()] == [0, 1]
    job.add(1)  # the engines lie in memory
    assert [one.number for one in job.run()] == [2]
    assert spark.sparkContext.getConf().get("spark.authenticate") == "true"
    require_private(job.parameters.memory)
    shutil.rmtree(job.parameters.memory / plan_of(job.parameters.checkpoint).run)
    job.add(2)  # the engines are gone
    assert [one.number for one in job.run()] == [3, 4]
    assert job.run() == []
    for batch in range(5):
        job.require_exact(batch)
    found = audit(job.parameters.checkpoint, job.parameters.out, spark, 100)
    assert found.mismatches == []
    assert found.lists > 10


@pytest.mark.slow
def test_a_batch_that_was_not_noted_is_not_there_twice(tmp_path, spark):
    """Spark forgets that the last batch was done, as when it is killed: the engines are ahead of it."""
    job = Job(tmp_path, spark, TIME, mechanism="location", partitions=3)
    job.add(2)
    job.run()
    before = sorted(map(repr, changes_of(job.parameters.out, 1)))
    for is_complete in (True, False):
        (job.parameters.checkpoint / "spark" / "commits" / "1").unlink()
        (job.parameters.checkpoint / "spark" / "commits" / ".1.crc").unlink(missing_ok=True)
        if not is_complete:
            forget_manifest(job.parameters.out, 1)
            job.add(1)
        assert [one.number for one in job.run()] == ([] if is_complete else [1, 2])
        assert sorted(map(repr, changes_of(job.parameters.out, 1))) == before
    for batch in range(3):
        job.require_exact(batch)


def test_a_subscription_that_changes_partitions_in_a_batch_is_present(tmp_path, spark):
    rows = [
        {"partition": 0, "object_id": 1, "entered": [4, 5], "scores": [0.5, 0.25], "left": []},
        {"partition": 0, "object_id": 1, "entered": [], "scores": [], "left": [4, 5]},
        {"partition": 1, "object_id": 1, "entered": [4], "scores": [0.75], "left": []},
    ]
    schema = pa.schema([("partition", pa.int32()), *ROWS])
    for number, changes in ((0, rows[:1]), (1, rows[1:])):
        # Another driver has written the batch as well, and was not the one to complete it.
        for driver, rows_of in (("1-a", rows), ("2-b", changes)):
            folder = tmp_path / "changes" / folder_of(number, driver)
            folder.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(rows_of, schema), folder / "part.parquet")
        path = manifest_path(tmp_path, number)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"batch": number, "driver": "2-b", "entered": 1}))
    found = [(row.subscription_id, row.score) for row in lists(tmp_path, spark).collect()]
    assert found == [(4, 0.75)]


def test_an_audit_sees_another_score(tmp_path, spark):
    job = Job(tmp_path, spark, partitions=1)
    job.add(1)
    job.run()
    (path,) = (job.parameters.out / "changes").glob("*/*/*.parquet")
    table = pq.read_table(path, partitioning=None)
    scores = [[one + 1e-6 for one in scores] for scores in table["scores"].to_pylist()]
    column = pa.array(scores, table.schema.field("scores").type)
    at = table.schema.get_field_index("scores")
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    pq.write_table(table.set_column(at, "scores", column), path)
    found = audit(job.parameters.checkpoint, job.parameters.out, spark, 100)
    assert found.mismatches


@pytest.mark.slow
def test_replicas_and_owners_have_the_same_messages_while_files_keep_coming(tmp_path, spark):
    """A feed that was read twice would be listed twice, and files come in between."""
    job = Job(tmp_path, spark, partitions=2, mechanism="keyword")
    job.add(1)
    job.run()

    def write():
        for _ in range(40):
            job.add(1)
            time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    query = start(job.parameters.changed(once=False, files_per_batch=100), spark)
    try:
        writer.join()
        query.processAllAvailable()
    finally:
        query.stop()
    sources = {path.name for path in (job.parameters.checkpoint / "spark" / "sources").iterdir()}
    assert len(sources) == 2
    found = audit(job.parameters.checkpoint, job.parameters.out, spark, 100)
    assert found.mismatches == []
    assert found.lists > 10


def test_rows_that_are_wrong_are_refused_alone_and_named(tmp_path, spark):
    job = Job(tmp_path, spark, partitions=1, format="json")
    good = job.feed.message(1)
    rows = [
        good,
        {**good, "object_id": 2, "lat": 95.0},
        {**good, "object_id": 3, "keywords": []},
        {**good, "object_id": -4},
        {**good, "object_id": 5, "action": "shout"},
        {**good, "object_id": 6, "ttl_ms": 0},
        {**good, "object_id": 7, "keywords": ["x" * 65]},
        {**good, "object_id": 8, "time_ms": None},
        {**good, "object_id": 9, "time_ms": 1_000 * good["time_ms"]},  # microseconds
    ]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "messages" / "0.json").write_text("\n".join([*lines, "{no json", ""]))
    wanted = job.feed.subscription(1)
    rows = [wanted, {**wanted, "k": 0}, {**wanted, "alpha": 2.0}, {**wanted, "similarity": "like"}]
    (tmp_path / "subscriptions" / "0.json").write_text("\n".join(map(json.dumps, rows)))
    (batch,) = job.run()
    assert (batch.counts["published"], batch.counts["started"], batch.refused) == (1, 1, 12)
    found = audit(job.parameters.checkpoint, job.parameters.out, spark, 10)
    assert found == (1, [])
    reasons = [json.loads(line)["reason"] for line in refused_of(job.parameters.out, 0)]
    for field in (
        "lon, lat",
        "keywords",
        "object_id",
        "action",
        "ttl_ms",
        "time_ms",
        "k",
        "alpha",
        "similarity",
    ):
        assert any(
            reason.startswith(f"{field} must be") or f" {field} must" in reason for reason in reasons
        )


def test_a_job_reads_no_payloads(tmp_path, spark):
    job = Job(tmp_path, spark, mechanism="location", partitions=1)
    rows = [{**job.feed.message(one), "payload": b"payload"} for one in (1, -1)]
    pq.write_table(pa.Table.from_pylist(rows, FEEDS["messages"]), tmp_path / "messages" / "0.parquet")
    schemas = []

    def read_messages(batch, *more):
        schemas.append(batch.schema)
        return reading.read_messages(batch, *more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planning, "read_messages", read_messages)
        (batch,) = job.run()
    assert [schema.names for schema in schemas] == [WITHOUT_PAYLOADS["messages"].names]
    assert (batch.counts["published"], batch.refused) == (1, 1)
    (line,) = refused_of(job.parameters.out, 0)
    assert json.loads(line)["row"].keys() == {*WITHOUT_PAYLOADS["messages"].names}
    assert audit(job.parameters.checkpoint, job.parameters.out, spark, 10).mismatches == []


def test_hashing_takes_no_sample(tmp_path, spark, monkeypatch):
    def read(*_):
        raise AssertionError

    monkeypatch.setattr(planning, "read_messages", read)
    job = Job(tmp_path, spark, partitions=1)
    job.add(1)
    assert len(job.run()) == 1


def test_an_audit_reads_json_that_has_no_row_or_other_types_as_the_job_does(tmp_path, spark):
    job = Job(tmp_path, spark, partitions=1, format="json")
    good = {**job.feed.message(1), "ttl_ms": None, "payload": "AAEC"}
    rows = [
        good,
        {**good, "object_id": 2, "ttl_ms": "long"},
        {**good, "object_id": 3, "keywords": [*good["keywords"], 5]},
        {**good, "object_id": 4, "time_ms": "now"},
        {**good, "object_id": 5, "lon": "NaN"},
        {**good, "object_id": 6.5},
        {**good, "object_id": 7, "keywords": "word1"},
        {**good, "object_id": 8, "payload": "?"},
        5,
        None,
        "publish",
    ]
    (tmp_path / "messages" / "a [1] {b}.json").write_text("\n".join(map(json.dumps, rows)))
    wanted = {**job.feed.subscription(1), "keywords": good["keywords"][:1], "k": 10}
    rows = [wanted, {**wanted, "subscription_id": 2, "k": "3"}, {**wanted, "subscription_id": "3"}, 5]
    (tmp_path / "subscriptions" / "0.json").write_text("\n".join(map(json.dumps, rows)))
    (batch,) = job.run()
    assert batch.counts["published"] > 1
    assert batch.refused > 7
    assert audit(job.parameters.checkpoint, job.parameters.out, spark, 10) == (2, [])


@pytest.mark.slow
def test_an_audit_of_a_running_job_compares_results_of_one_batch(tmp_path, spark, monkeypatch):
    job = Job(tmp_path, spark)
    job.add(1)
    job.run()
    found = audit_module.batches

    def batches(out):
        before = found(out)
        job.add(1)
        job.run()
        return before

    monkeypatch.setattr(audit_module, "batches", batches)
    assert audit(job.parameters.checkpoint, job.parameters.out, spark, 100).mismatches == []
    assert len(found(Stored(spark, job.parameters.out))) == 2


def test_a_job_resumes_with_its_settings_or_names_the_difference(tmp_path, spark):
    job = Job(tmp_path, spark, partitions=1)
    job.run()
    with pytest.raises(PlanError, match="partitions is 2, must be 1"):
        job.run(job.parameters.changed(partitions=2))
    with pytest.raises(PlanError, match="idf is "):
        job.run(job.parameters.changed(idf=None))


@pytest.mark.slow
def test_a_batch_that_is_repeated_refuses_the_rows_that_it_refused_before(tmp_path, spark):
    """They are compared with the time of the batch, which is its first start."""
    job = Job(tmp_path, spark, partitions=1)
    job.feed.time_ms = time.time_ns() // 1_000_000 + 3_600_000
    job.add(1)
    job.run()
    assert plan_of(job.parameters.checkpoint).ahead_ms == AHEAD_MS
    before = manifest(job.parameters.out, 0)
    assert before["published"] > 0
    assert before.get("refused", 0) == 0
    started = job.parameters.checkpoint / "spark" / "offsets" / "0"
    version, about, *offsets = started.read_text().splitlines()
    about = json.dumps(json.loads(about) | {"batchTimestampMs": job.feed.time_ms - 2 * AHEAD_MS})
    started.write_text("\n".join([version, about, *offsets]))
    for name in ("offsets/.0.crc", "commits/0", "commits/.0.crc"):
        (job.parameters.checkpoint / "spark" / name).unlink(missing_ok=True)
    forget_manifest(job.parameters.out, 0)
    # Memory has the batch as it was: with rows that it now has refused at its first start.
    shutil.rmtree(job.parameters.memory / plan_of(job.parameters.checkpoint).run)
    (batch,) = job.run()
    assert batch.counts["published"] == 0
    assert batch.refused >= before["published"]
    assert all(
        "ahead of the clock" in json.loads(one)["reason"] for one in refused_of(job.parameters.out, 0)
    )
    assert audit(job.parameters.checkpoint, job.parameters.out, spark, 100).mismatches == []


@pytest.mark.slow
def test_a_plan_of_an_earlier_version_has_the_bound_of_times(tmp_path, spark):
    job = Job(tmp_path, spark, partitions=1)
    job.run()
    path = job.parameters.checkpoint / "plan.json"
    about = json.loads(path.read_bytes())
    del about["ahead_ms"]
    path.write_text(json.dumps(about))
    job.add(1)
    assert [one.number for one in job.run()] == [0]
    with pytest.raises(PlanError, match="ahead_ms is 1, must be 86400000, as at the start"):
        job.run(job.parameters.changed(ahead_ms=1))
