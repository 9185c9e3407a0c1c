"""Options of `nearcast stream run`."""

from __future__ import annotations

import click
import pytest

from cli.stream.run import run

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


def test_an_empty_address_of_the_metrics_is_refused():
    with pytest.raises(click.BadParameter, match="'', must be an address or a name of this machine"):
        run.make_context("run", [*NEEDED, "--metrics-host="])
