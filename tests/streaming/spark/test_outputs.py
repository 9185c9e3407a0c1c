"""An output belongs to one checkpoint: batches of another job would be taken for its own."""

import json

import pytest

from streaming.job import start
from streaming.plan import PlanError
from tests.streaming.spark.test_job import Job


def bound(folder):
    """The id of the job that a folder has."""
    return json.loads((folder / "job.json").read_text())["job"]


def unbind(folder):
    """Leave a folder as an earlier version has left it."""
    for path in folder.glob("*job.json*"):
        path.unlink()


@pytest.mark.slow
def test_an_output_of_another_job_is_refused(tmp_path, spark):
    job = Job(tmp_path, spark, partitions=1)
    out, checkpoint = job.parameters.out, job.parameters.checkpoint
    job.add(1)
    job.run()
    claimed = (checkpoint / "driver.json").read_bytes()
    another = r"out has results of another job than .*new: continue that job with its own --checkpoint"
    with pytest.raises(PlanError, match=another):
        start(job.parameters.changed(checkpoint=tmp_path / "new"), spark)
    with pytest.raises(PlanError, match="empty lacks the results of the batches up to 0 of "):
        start(job.parameters.changed(out=tmp_path / "empty"), spark)
    assert (checkpoint / "driver.json").read_bytes() == claimed, "a driver that runs the job may go on"
    for folder in (out, checkpoint):
        unbind(folder)
    with pytest.raises(PlanError, match=another):
        start(job.parameters.changed(checkpoint=tmp_path / "new"), spark)
    job.add(1)
    assert [one.number for one in job.run()] == [1]
    assert bound(out) == bound(checkpoint)
    for batch in range(2):
        job.require_exact(batch)


def test_a_start_that_was_interrupted_is_repeated(tmp_path, spark):
    job = Job(tmp_path, spark, partitions=1)
    job.run()
    assert bound(job.parameters.out) == bound(job.parameters.checkpoint)
    unbind(job.parameters.out)  # killed before it was written
    job.add(1)
    assert [one.number for one in job.run()] == [0]
    assert bound(job.parameters.out) == bound(job.parameters.checkpoint)
