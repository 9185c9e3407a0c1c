"""A job that runs on: asked to divide itself again, and what it tells of itself."""

import threading
import time
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from feeds.storage import Stored
from streaming import service as module
from streaming.claim import Claim, TakenOverError
from streaming.metrics import JobMetrics
from streaming.parameters import ParameterError
from streaming.plan import PlanError
from streaming.service import Folders, Listener, LoadWatch, ask_to_rebalance, serve
from tests.streaming.spark.test_job import Job
from tests.support.stream_results import complete, manifest

GUARD_S = 180.0


class Served:
    """A job that is served in a thread, until the block ends."""

    def __init__(self, job, spark):
        self.metrics, self.batches, self.divided, self.reported = JobMetrics(), [], [], []
        listener = Listener(
            self.noted,
            lambda _done, _total: None,
            lambda done, _seconds: self.divided.append(done),
            on_notice=self.reported.append,
            on_query=self.metrics.follow,
        )
        self.stop = threading.Event()
        parameters = job.parameters.changed(once=False, every_ms=100)
        self.errors = []

        def run():
            try:
                self.errors.append(serve(parameters, spark, self.stop.is_set, listener))
            except TakenOverError as error:
                self.errors.append(error)

        self.thread = threading.Thread(target=run)

    def noted(self, batch):
        self.metrics.note(batch)
        self.batches.append(batch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(GUARD_S)
        assert not self.thread.is_alive()

    def wait_for(self, condition):
        end_s = time.monotonic() + GUARD_S
        while not condition():
            assert self.thread.is_alive(), self.errors
            assert time.monotonic() < end_s, (self.reported, len(self.batches))
            time.sleep(0.05)


@pytest.mark.slow
def test_a_job_rebalances_on_request_and_reports_it(tmp_path, spark):
    job = Job(tmp_path, spark, mechanism="location", partitions=2)
    checkpoint = Stored(spark, job.parameters.checkpoint)
    with pytest.raises(PlanError, match="is not the checkpoint of a job"):
        ask_to_rebalance(checkpoint)
    job.add(1)
    with Served(job, spark) as served, served.metrics.served(0, "127.0.0.1") as port:
        served.wait_for(lambda: len(served.batches) == 1)
        ask_to_rebalance(checkpoint)
        served.wait_for(lambda: served.divided)
        assert (served.divided[0].before, served.divided[0].after) == (2, 2)
        ask_to_rebalance(checkpoint)  # has to wait for a batch
        job.add(1)
        served.wait_for(lambda: len(served.divided) == 2 and job.has_read_all())
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as result:
            families = list(text_string_to_metric_families(result.read().decode()))
    sent = {
        (sample.name.removeprefix("nearcast_stream_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }
    assert served.errors == [None]
    batches = complete(job.parameters.out)
    abouts = [manifest(job.parameters.out, number) for number in batches]
    first, last = batches[0], batches[-1]  # the files of the second part may be seen one by one
    for outcome in ("published", "retracted", "started", "ended"):
        assert sent["rows_total", outcome] == sum(about.get(outcome, 0) for about in abouts)
    for kind in ("entered", "left"):
        assert sent["changes_total", kind] == sum(about[kind] for about in abouts)
    assert sent["batch_seconds_count",] == len(batches)
    assert sent["last_batch",] == last
    assert sent["subscriptions",] == abouts[-1]["subscriptions"] > 0
    assert sent["index_bytes",] == abouts[-1]["index_bytes"]
    assert sent["block_bytes_total",] == sum(about["block_bytes"] for about in abouts) > 0
    assert sent["lag_seconds",] > 0
    assert sent["partition_seconds", "0"] <= sent["partition_seconds", "1"]
    for file, batch in enumerate((first, last)):
        job.require_exact(batch, file)


def test_a_job_that_waits_notices_that_it_was_taken_over(tmp_path, spark):
    job = Job(tmp_path, spark)
    job.add(1)
    with Served(job, spark) as served:
        served.wait_for(lambda: served.batches)
        Claim(Stored(spark, job.parameters.checkpoint)).take()
        served.thread.join(GUARD_S)
        assert not served.thread.is_alive()
    assert [type(error) for error in served.errors] == [TakenOverError]
    assert complete(job.parameters.out) == [0]


def test_a_job_without_its_feed_reports_it_and_resumes_when_it_returns(tmp_path, spark):
    job = Job(tmp_path, spark)
    job.add(4)
    feed, elsewhere = tmp_path / "messages", tmp_path / "elsewhere"
    with Served(job, spark) as served:
        served.wait_for(lambda: served.batches)
        feed.rename(elsewhere)
        served.wait_for(lambda: served.reported)
        elsewhere.rename(feed)
        served.wait_for(lambda: "all folders are available again" in served.reported)
        job.add(1)
        served.wait_for(job.has_read_all)
    gone = f"messages is {feed}, must be an existing folder: waiting for it"
    reported = [text for text in served.reported if not text.startswith("the query has failed")]
    assert reported == [gone, "all folders are available again"]
    assert served.errors == [None]
    for file in range(4):  # what a batch has read depends on when the folder was there
        job.apply(file)
    job.require_exact(served.batches[-1].number, 4)


class Failed:
    """A query that has failed."""

    isActive = False  # noqa: N815 - Spark's name

    def stop(self):
        pass

    def exception(self):
        return RuntimeError("a file is missing")


@pytest.mark.parametrize("returns", [False, True])
def test_a_job_that_lacks_its_feed_does_not_take_the_job_back(tmp_path, spark, monkeypatch, returns):
    job = Job(tmp_path, spark)
    feed, elsewhere = tmp_path / "messages", tmp_path / "elsewhere"
    newer = Claim(Stored(spark, job.parameters.checkpoint))
    started, calls = [], []

    def started_with(_parameters, _spark, _on_batch, _on_compiling, claim, _on_notice):
        claim.take()
        started.append(claim)
        feed.rename(elsewhere)
        return Failed()

    def on_notice(text):
        calls.append(text)
        if len(calls) == 1:
            newer.take()
            if returns:
                elsewhere.rename(feed)

    monkeypatch.setattr(module, "start", started_with)
    monkeypatch.setattr(module, "_LOOKED_S", 0.05)
    listener = Listener(
        lambda _batch: None, lambda _done, _total: None, lambda _done, _s: None, on_notice=on_notice
    )
    end_s = time.monotonic() + 60.0
    parameters = job.parameters.changed(once=False)
    with pytest.raises(TakenOverError):
        serve(parameters, spark, lambda: len(started) > 1 or time.monotonic() > end_s, listener)
    newer.require()
    assert any(text.endswith("is started again: a file is missing") for text in calls)


def test_a_driver_that_was_taken_over_does_not_rebalance(tmp_path, spark):
    job = Job(tmp_path, spark, mechanism="location", partitions=2)
    job.add(1)
    newer = Claim(Stored(spark, job.parameters.checkpoint))

    class Watch(LoadWatch):
        def is_due(self):
            if self._noted and not newer.name:
                newer.take()
            return bool(newer.name)

    listener = Listener(lambda _batch: None, lambda _done, _total: None, lambda _done, _s: None)
    with pytest.raises(TakenOverError):
        serve(job.parameters.changed(once=False), spark, lambda: False, listener, Watch("location"))
    newer.require()


def test_a_failure_after_a_folder_is_back_is_explained_once_by_its_absence(tmp_path, spark):
    job = Job(tmp_path, spark)
    feed, elsewhere = tmp_path / "messages", tmp_path / "elsewhere"
    folders = Folders(job.parameters.changed(once=False), spark, lambda _text: None)

    def be_absent():
        feed.rename(elsewhere)
        assert not folders.are_there()
        elsewhere.rename(feed)

    assert not folders.explain_failure()
    be_absent()
    assert folders.explain_failure()
    assert not folders.explain_failure(), "the query was started again and failed for another reason"
    be_absent()
    folders.note_batch()
    assert not folders.explain_failure(), "the folder was there for the query that failed"


def test_hashing_divides_alike_for_all_subscriptions(tmp_path, spark):
    job = Job(tmp_path, spark)
    job.add(1)
    job.run()
    with pytest.raises(PlanError, match="divides by hashing"):
        ask_to_rebalance(Stored(spark, job.parameters.checkpoint))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"once": True, "every_ms": 100}, "every is 100 ms, must be absent with --once"),
        ({"every_ms": 0}, "every is 0 ms, must be 1 to"),
    ],
)
def test_intervals_that_mean_nothing_are_refused(tmp_path, spark, given, text):
    job = Job(tmp_path, spark)
    with pytest.raises(ParameterError, match=text):
        job.parameters.changed(**({"once": False} | given))
