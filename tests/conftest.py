"""What pytest says of itself before the tests."""

from __future__ import annotations

from tests.support.amounts import SEED, TIMES


def pytest_report_header() -> str:
    return f"random tests: NEARCAST_TEST_SEED={SEED} NEARCAST_TEST_TIMES={TIMES}"
