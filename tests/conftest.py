"""What pytest says of itself before the tests, and which tests run in one process."""

from __future__ import annotations

import pytest

from tests.support.amounts import SEED, TIMES


def pytest_report_header() -> str:
    return f"random tests: NEARCAST_TEST_SEED={SEED} NEARCAST_TEST_TIMES={TIMES}"


@pytest.hookimpl(tryfirst=True)  # before what reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests with Spark share its session: it takes longer to start than they run."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
