"""What pytest says of itself before the tests, and which tests run in one process."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.support.amounts import SEED, TIMES

_SPARK = "tests/simulator/"


def pytest_report_header() -> str:
    return f"random tests: NEARCAST_TEST_SEED={SEED} NEARCAST_TEST_TIMES={TIMES}"


class Scheduling(LoadScopeScheduling):
    """Tests one by one to whatever process is free; those with Spark to one, and first.

    A session of Spark takes longer to start than the tests of it run. (Marks of groups, which
    `--dist loadgroup` reads, have no effect in xdist 3.8 with pytest 9.)
    """

    def _split_scope(self, nodeid: str) -> str:
        return _SPARK if nodeid.startswith(_SPARK) else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    return Scheduling(config, log)
