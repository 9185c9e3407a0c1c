"""The job with feeds in Redis, and changes told there."""

import sys
from collections import Counter

import pyarrow as pa
import pytest

from feeds.redis.address import BEGIN, Span
from feeds.redis.streams import Streams
from feeds.schemas import FEEDS, KEYS
from streaming.arrays.changes import ROWS
from streaming.job import start
from streaming.plan import PlanError
from streaming.result.audit import audit
from tests.streaming.spark.test_job import Job
from tests.streaming.spark.test_serving import Served
from tests.support.stream_results import changes_of, forget_manifest


def appended(redis, feed, count):
    """Append a batch of each feed."""
    for name, rows in (
        ("subscriptions", feed.subscriptions(8)),
        ("messages", feed.messages(count)),
    ):
        streams = Streams(redis.address(name, 2), FEEDS[name], KEYS[name])
        streams.append(pa.Table.from_pylist(rows, FEEDS[name]))
        streams.close()


def sent(redis, partitions):
    """Return what the streams of updates have of each batch, and how often a batch is complete."""
    changes, batches = Counter(), Counter()
    for partition in range(partitions):
        streams = Streams(redis.address("updates"), ROWS, "object_id")
        name = f"updates:{partition}"
        span = Span(redis.address("updates").server, name, BEGIN, "+")
        for rows in streams.read(span):
            changes.update(map(repr, rows.to_pylist()))
    found = redis.client().xrange("updates")
    batches.update(int(entry_id.split(b"-")[0]) - 1 for entry_id, _ in found)
    return changes, batches


def test_a_job_reads_streams_and_sends_its_changes_once(tmp_path, spark, redis):
    job = Job(tmp_path, spark, partitions=2)
    job.parameters = job.parameters.changed(
        messages=redis.address("messages", 2),
        subscriptions=redis.address("subscriptions", 2),
        updates=redis.address("updates"),
        files_per_batch=2,  # an entry of each stream
    )
    for _ in range(2):
        appended(redis, job.feed, 40)
    assert [one.number for one in job.run()] == [0, 1]
    redis.kill()
    redis.start()
    # As when it is killed before the last batch is noted: it is told again, and is there once.
    (job.parameters.checkpoint / "spark" / "commits" / "1").unlink()
    (job.parameters.checkpoint / "spark" / "commits" / ".1.crc").unlink(missing_ok=True)
    forget_manifest(job.parameters.out, 1)
    appended(redis, job.feed, 40)
    assert [one.number for one in job.run()] == [1, 2]
    found = audit(job.parameters.checkpoint, job.parameters.out, spark, 100)
    assert found.mismatches == []
    assert found.lists > 10
    rows = [row for batch in range(3) for row in changes_of(job.parameters.out, batch)]
    changes, batches = sent(redis, 2)
    assert changes == Counter(repr({name: row[name] for name in ROWS.names}) for row in rows)
    assert batches == dict.fromkeys(range(3), 1)

    # Another job would number its batches alike, and Redis would drop them.
    others = {name: tmp_path / f"other-{name}" for name in ("out", "checkpoint")}
    for _ in range(2):
        with pytest.raises(
            PlanError, match=r"/updates\S* has changes of another job than .*other-checkpoint"
        ):
            start(job.parameters.changed(**others), spark)
        redis.client().delete("updates:job")  # an earlier version has written no id
    assert job.run() == []

    redis.client().xtrim("messages:0", maxlen=0, approximate=False)
    appended(redis, job.feed, 40)
    with pytest.raises(Exception, match="messages:0 lacks the entry"):
        job.run()


@pytest.mark.parametrize(
    "program", ["python_streaming_source_runner", "transform_with_state_driver_worker"]
)
def test_a_query_for_which_python_starts_too_slowly_is_started_again(
    tmp_path, spark, redis, monkeypatch, program
):
    job = Job(tmp_path, spark, partitions=1)
    job.parameters = job.parameters.changed(messages=redis.address("messages"))
    slow, mark = tmp_path / "python", tmp_path / "was-slow"
    slow.write_text(
        f"""#!/bin/sh
case "$*" in *{program}*)
    [ -e {mark} ] || {{ touch {mark}; sleep 11; }};;
esac
exec {sys.executable} "$@"
"""
    )
    slow.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(slow))
    job.add(1)
    appended(redis, job.feed, 40)
    with Served(job, spark) as served:
        served.wait_for(lambda: served.batches)
    assert mark.exists()
    assert served.reported == ["Python took longer than 10 s to start; the query is started again"]
    assert served.errors == [None]


def test_entries_that_cannot_be_read_are_refused(tmp_path, spark, redis):
    job = Job(tmp_path, spark, partitions=1)
    job.parameters = job.parameters.changed(messages=redis.address("messages"))
    redis.client().xadd("messages:0", {"json": '{"action": "retract", "object_id": 3, "time_ms": 9}'})
    redis.client().xadd("messages:0", {"json": "{"})
    redis.client().xadd("messages:0", {"something": "else"})
    batches = job.run()
    assert sum(one.refused for one in batches) == 2
    assert sum(one.counts.get("unknown", 0) for one in batches) == 1
