"""Options of `nearcast stream`, and its errors."""

from __future__ import annotations

from contextlib import nullcontext

import click
import pytest
from pyspark.errors import AnalysisException
from redis.exceptions import ConnectionError as RedisConnectionError

from cli.options import given
from cli.spark_options import SparkChoice
from cli.stream.options import session
from cli.stream.run import run
from feeds import spark
from streaming.parameters import StreamParameters
from streaming.plan import AHEAD_MS

NEEDED = (
    "--messages=a",
    "--subscriptions=b",
    "--out=c",
    "--checkpoint=d",
    "--area=0,0,1,1",
    "--window=10m",
)


@pytest.mark.parametrize(
    ("given", "host"),
    [("::1", "::1"), ("[::1]", "::1"), ("127.0.0.2", "127.0.0.2"), ("localhost", "localhost")],
)
def test_the_address_of_the_metrics_may_have_brackets(given, host):
    assert run.make_context("run", [*NEEDED, f"--metrics-host={given}"]).params["metrics_host"] == host


@pytest.mark.parametrize(("option", "name"), [("--every", "every_ms"), ("--ahead", "ahead_ms")])
def test_a_time_has_a_unit(option, name):
    values = given(run.make_context("run", [*NEEDED, f"{option}=90s"]).params)
    chosen = {one: value for one, value in values.items() if one in StreamParameters.model_fields}
    assert getattr(StreamParameters(**chosen), name) == 90_000
    assert StreamParameters(**{one: chosen[one] for one in chosen if one != name}).ahead_ms == AHEAD_MS


def test_an_empty_address_of_the_metrics_is_refused():
    with pytest.raises(click.BadParameter, match="'', must be an address or a name of this machine"):
        run.make_context("run", [*NEEDED, "--metrics-host="])


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            AnalysisException("no such path\n  at org.apache.spark.A"),
            "no such path",
        ),
        (
            RedisConnectionError("Error 111 connecting to 127.0.0.1:1"),
            "Error 111 connecting to 127.0.0.1:1",
        ),
    ],
)
def test_errors_of_spark_and_redis_are_one_line(error, line, monkeypatch):
    monkeypatch.setattr(spark, "spark_session", lambda *_: nullcontext())
    with pytest.raises(click.ClickException) as caught, session(SparkChoice("local[1]", {})):
        raise error
    assert caught.value.message.endswith(line)
    assert len(caught.value.message.splitlines()) == 1
