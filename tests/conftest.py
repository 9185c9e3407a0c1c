"""What pytest says of itself before the tests, and which tests run in one process."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.support.amounts import SEED, TIMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault("NEARCAST_CREATE", "true")
"""Servers of tests make their stores, unless a test says that they do not."""

_ROOT = Path(__file__).resolve().parents[1]
_SPARK = ("tests/simulator/", "tests/streaming/")
"""Tests below each of which share a session."""
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Jobs of tests are small: code that takes long to optimise, and threads that collect, do not pay."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session in which a task that fails is tried again, as in a cluster."""
    from feeds.spark import spark_session  # noqa: PLC0415

    os.environ.setdefault("JAVA_TOOL_OPTIONS", _JVM)  # of this process: Spark's, and its children's
    with spark_session("local[2,4]") as session:
        yield session


@pytest.fixture
def view(spark: SparkSession, tmp_path: Path) -> str:
    """The URI of a view of the test's folder: POSIX calls cannot open it."""
    name = f"t{secrets.token_hex(4)}"
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set(f"fs.viewfs.mounttable.{name}.link./data", tmp_path.as_uri())
    return f"viewfs://{name}/data"


def pytest_report_header() -> str:
    return f"random tests: NEARCAST_TEST_SEED={SEED} NEARCAST_TEST_TIMES={TIMES}"


class Scheduling(LoadScopeScheduling):
    """Tests one by one to whatever process is free; those with Spark to one of each room, and first.

    A session of Spark takes longer to start than the tests of it run. (Marks of groups, which
    `--dist loadgroup` reads, have no effect in xdist 3.8 with pytest 9.)
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        room = next((one for one in _SPARK if module.startswith(one)), None)
        return room if room is not None and _uses_spark(module) else nodeid


@cache
def _uses_spark(module: str) -> bool:
    """Whether a file of tests names the session, or what is made with it."""
    text = (_ROOT / module).read_text()
    return re.search(r"\b(spark|simulat(ion|e|ed))\b|invoke", text) is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    return Scheduling(config, log)
