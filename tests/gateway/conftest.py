"""A town for each test."""

from __future__ import annotations

import pytest

from tests.gateway.town import a_town


@pytest.fixture
async def town(tmp_path):
    async with a_town(tmp_path) as town:
        yield town
