"""The programs of docs/tutorial.md print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from server.settings import load_settings
from tests.support.programs import printed
from tests.support.servers import serving

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
ADDRESS = "localhost:7433"


async def test_the_programs_print_the_output_of_the_page(tmp_path):
    shop, courier = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (shown,) = re.findall(r"```\n(step .*?)```", PAGE, re.DOTALL)
    (area,) = re.findall(r"nearcast serve --area (\S+)", PAGE)
    settings = load_settings({"area": area, "store": str(tmp_path / "city.db"), "port": 0})
    async with serving(settings) as server:
        for _ in range(2):
            assert await printed(shop, ADDRESS, server.port, tmp_path) == "3 offers published\n"
        assert len(server.coordinator.matching.objects) == 3
        assert await printed(courier, ADDRESS, server.port, tmp_path) == shown
