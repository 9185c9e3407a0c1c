"""Fixtures of all folders, which tests run in one process, and what pytest says before the tests."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from cluster import local_servers
from tests.support.amounts import SEED, TIMES
from tests.support.ports import LOG_PORTS
from tests.support.redis_server import RedisServer, redis_server
from tests.support.stuck import reported
from tests.support.tiers import Guard, left_out, markers, rank

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault("NEARCAST_CREATE", "true")
"""Servers of tests make their stores, unless a test says that they do not."""

local_servers.PORTS = LOG_PORTS

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
"""How fast a machine draws and runs examples decides no test."""

_ROOT = Path(__file__).resolve().parents[1]
_GUARD = Guard()
_MASTER = "local[2,4]"
"""Of Spark: a task that fails is tried again, as in a cluster."""
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
"""Options of Java for Spark in this process and in commands that tests start.

Their jobs are small: with these options `nearcast simulate` takes half of the CPU time.
"""


@pytest.fixture(scope="session", params=[_MASTER])
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session. Its master is a parameter, and so in the name of each test that uses it."""
    from feeds.spark import spark_session  # noqa: PLC0415

    with spark_session(request.param) as session:
        yield session


@pytest.fixture
def view(spark: SparkSession, tmp_path: Path) -> str:
    """The URI of a view of the test's folder: POSIX calls cannot open it."""
    name = f"t{secrets.token_hex(4)}"
    configuration = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - nothing else leads there
    configuration.set(f"fs.viewfs.mounttable.{name}.link./data", tmp_path.as_uri())
    return f"viewfs://{name}/data"


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server; where there is no program for it the test is skipped."""
    with redis_server(tmp_path / "redis") as one:
        yield one


def pytest_report_header() -> str:
    return f"random tests: NEARCAST_TEST_SEED={SEED} NEARCAST_TEST_TIMES={TIMES}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over folders of which no test is chosen: their imports take longer than their names."""
    is_here = collection_path.is_relative_to(_ROOT)
    return (is_here and left_out(collection_path.relative_to(_ROOT), config.option.markexpr)) or None


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in markers(item.path.relative_to(_ROOT), getattr(item, "fixturenames", ())):
            item.add_marker(mark)
    items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with _GUARD.watching(item), reported(item.nodeid):
        return (yield)


class Scheduling(LoadScopeScheduling):
    """Files of tests, in the order of their tests, to whatever process is free.

    Tests of a file share servers and data. All tests of simulations with Spark share a session, and so
    do all others with Spark: it takes longer to start than most of them run. This process does not
    collect tests, and knows only their names. (Marks of groups, which `--dist loadgroup` reads, have no
    effect in xdist 3.8 with pytest 9.)
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by the number of tests

    def _split_scope(self, nodeid: str) -> str:
        if _MASTER in nodeid or nodeid.startswith("tests/streaming/spark/"):
            return "simulations" if nodeid.startswith("tests/simulator/") else "jobs"
        return nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    return Scheduling(config, log)
