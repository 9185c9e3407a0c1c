"""A job that goes on with other partitions, or another mechanism: results do not change by it."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from feeds.schemas import END, FEEDS
from feeds.storage import Stored
from streaming import planning
from streaming import rebalance as module
from streaming.claim import Claim, TakenOverError
from streaming.job import start
from streaming.plan import PlanError
from streaming.planning import last_of, planned, state_of
from streaming.rebalance import Rebalanced, rebalance
from streaming.result.audit import audit
from tests.streaming.spark.test_job import COUNT, TIME, Job
from tests.support.stream_results import complete, forget_manifest, manifest, plan_of


def test_a_job_resumes_with_other_partitions_and_another_index(tmp_path, spark):
    job = Job(tmp_path, spark, COUNT, partitions=2, booleans=True)
    job.add(2)
    assert rebalance(job.parameters, spark) is None
    job.run()
    (job.parameters.checkpoint / "spark" / "commits" / "1").unlink()  # killed before it was noted
    (job.parameters.checkpoint / "spark" / "commits" / ".1.crc").unlink(missing_ok=True)
    forget_manifest(job.parameters.out, 1)
    sent = []
    changed = {"mechanism": "location", "partitions": 3, "clause_index": "ap-tree"}
    parameters = job.parameters = job.parameters.changed(**changed)
    done = rebalance(parameters, spark, sent.append)
    assert [one.number for one in sent] == [1]
    assert (done.before, done.after) == (2, 3)
    assert job.run() == []
    with pytest.raises(PlanError, match="has not read any messages since"):
        rebalance(parameters.changed(partitions=4), spark)

    job.add(1)
    assert [one.number for one in job.run()] == [3]
    assert len(list(parameters.checkpoint.glob("moved-*"))) == 1
    plan = plan_of(parameters.checkpoint)
    checkpoint = Stored(spark, parameters.checkpoint)
    keys = state_of(checkpoint, "head", spark).select("key.key").collect()
    assert {row.key for row in keys} == {*plan.keys}
    shutil.rmtree(parameters.memory / plan.run)  # from the log again
    job.add(1)
    job.run()
    assert list(parameters.checkpoint.glob("moved-*")) == []
    for file, batch in enumerate((0, 1, 3, 4)):
        job.require_exact(batch, file)
    assert audit(parameters.checkpoint, parameters.out, spark, 100).mismatches == []


@pytest.mark.slow
def test_so_does_one_with_replicas(tmp_path, spark):
    job = Job(tmp_path, spark, TIME, mechanism="keyword", partitions=2)
    job.add(1)
    job.run()
    job.parameters = job.parameters.changed(mechanism="prefix", partitions=3)
    rebalance(job.parameters, spark)
    job.add(1)
    job.run()
    batches = complete(job.parameters.out)
    with_messages = [one for one in batches if manifest(job.parameters.out, one)["files"]["messages"]]
    for file, batch in enumerate(with_messages):
        job.require_exact(batch, file)


def test_a_change_that_a_rebalancing_cannot_make_is_refused(tmp_path, spark):
    job = Job(tmp_path, spark, partitions=2)
    planned(job.parameters, spark)
    for chosen, words in [
        ({"window": TIME}, "window is .* must be"),
        ({"idf": None}, "idf is"),
        (
            {"mechanism": "keyword"},
            "mechanism is keyword, must be one of hashing, location",
        ),
    ]:
        with pytest.raises(PlanError, match=words):
            rebalance(job.parameters.changed(**chosen), spark)
    with pytest.raises(PlanError, match=r"partitions is 3, must be 2.*--rebalance"):
        start(job.parameters.changed(partitions=3), spark)


@pytest.mark.slow
def test_a_rebalancing_that_was_interrupted_is_gone_on_with(tmp_path, spark, monkeypatch):
    job = Job(tmp_path, spark, partitions=2)
    job.add(1)
    job.run()
    wanted = job.parameters.changed(partitions=3)

    def killed(*_args, **_more):
        raise KeyboardInterrupt

    for name in ("_divide", "keys_of"):  # before Spark's own part of it, and behind it
        with monkeypatch.context() as patched:
            patched.setattr(module, name, killed)
            with pytest.raises(KeyboardInterrupt):
                rebalance(wanted, spark)
        for parameters in (job.parameters, wanted):
            with pytest.raises(PlanError, match="start the job again with --rebalance"):
                start(parameters, spark)
        with pytest.raises(
            PlanError, match="its target was mechanism hashing, partitions 3, first_level 0"
        ):
            rebalance(wanted.changed(partitions=4), spark)
    there = manifest(job.parameters.out, 0)["subscriptions"]
    assert there > 0
    assert rebalance(wanted, spark) == Rebalanced(2, 3, there)
    job.add(1)
    job.parameters = wanted
    job.run()
    job.require_exact(0)
    job.require_exact(complete(wanted.out)[-1], 1)


@pytest.mark.slow
def test_a_rebalancing_takes_the_job_over_and_ends_if_another_driver_does(tmp_path, spark, monkeypatch):
    job = Job(tmp_path, spark, partitions=2)
    job.add(1)
    job.run()
    checkpoint = Stored(spark, job.parameters.checkpoint)
    idle, newer = Claim(checkpoint), Claim(checkpoint)
    idle.take()
    wanted = job.parameters.changed(partitions=3)
    before = plan_of(job.parameters.checkpoint)

    def overtaken(*given):
        with pytest.raises(TakenOverError):
            idle.require()  # it can complete no batch after the state was read
        if not newer.name:
            newer.take()
        return state_of(*given)

    monkeypatch.setattr(module, "state_of", overtaken)
    with pytest.raises(TakenOverError):
        rebalance(wanted, spark)
    newer.require()
    assert plan_of(job.parameters.checkpoint) == before
    assert last_of(checkpoint / "spark" / "commits") == 0  # Spark has not redistributed its state


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "after"), [("hashing", "location"), ("keyword", "prefix")])
def test_a_job_without_subscriptions_or_messages_is_rebalanced(tmp_path, spark, mechanism, after):
    job = Job(tmp_path, spark, mechanism=mechanism, partitions=2)
    job.add(1)
    (tmp_path / "messages" / "000.parquet").unlink()
    job.run()
    job.parameters = job.parameters.changed(mechanism=after, partitions=3)
    assert rebalance(job.parameters, spark).subscriptions > 0
    about = {"action": END, "time_ms": job.feed.time_ms + 1}
    ends = [{"subscription_id": one, **about} for one in job.feed.subscribed]
    table = pa.Table.from_pylist(ends, FEEDS["subscriptions"])
    pq.write_table(table, tmp_path / "subscriptions" / "ends.parquet")
    job.run()
    job.parameters = job.parameters.changed(partitions=2)
    assert rebalance(job.parameters, spark).subscriptions == 0
    job.add(1)
    job.run()
    job.require_exact(complete(job.parameters.out)[-1], 1)


@pytest.mark.slow
def test_the_memory_of_the_run_before_is_released_though_the_rebalancing_was_killed(
    tmp_path, spark, monkeypatch
):
    job = Job(tmp_path, spark, partitions=2)
    job.add(1)
    job.run()
    before = job.parameters.memory / plan_of(job.parameters.checkpoint).run
    assert before.exists()
    job.parameters = job.parameters.changed(partitions=3)

    def killed(*_args, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr(planning, "release", killed)
    with pytest.raises(KeyboardInterrupt):
        rebalance(job.parameters, spark)
    monkeypatch.undo()
    plan = plan_of(job.parameters.checkpoint)
    assert plan.partitions == 3
    assert rebalance(job.parameters, spark) is None  # as the documentation has it, after a crash
    assert not before.exists()
    assert not (job.parameters.checkpoint / "rebalancing.json").exists()
    assert plan_of(job.parameters.checkpoint) == plan
    job.add(1)
    assert [one.number for one in job.run()] == [2]
    for file, batch in enumerate((0, 2)):
        job.require_exact(batch, file)


def test_a_checkpoint_that_has_lost_its_plan_is_refused(tmp_path, spark):
    job = Job(tmp_path, spark)
    job.add(1)
    job.run()
    (job.parameters.checkpoint / "plan.json").unlink()
    for run in (rebalance, start):
        with pytest.raises(PlanError, match=r"has batches up to 0, but lacks plan\.json"):
            run(job.parameters, spark)


@pytest.mark.slow
def test_a_batch_that_was_started_during_a_rebalancing_is_completed_first(tmp_path, spark, monkeypatch):
    job = Job(tmp_path, spark, partitions=2)
    job.add(2)
    job.run()
    wanted = job.parameters.changed(partitions=3)

    def failed(*_args, **_more):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(module, "_divide", failed)
        with pytest.raises(RuntimeError):
            rebalance(wanted, spark)
    (job.parameters.checkpoint / "spark" / "commits" / "1").unlink()  # as an older driver leaves it
    (job.parameters.checkpoint / "spark" / "commits" / ".1.crc").unlink(missing_ok=True)
    forget_manifest(job.parameters.out, 1)
    sent = []
    assert rebalance(wanted, spark, sent.append).after == 3
    assert [one.number for one in sent] == [1]
    for batch in range(2):
        job.require_exact(batch)
