"""The programs of docs/scripts.md print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from server.settings import load_settings
from tests.support.programs import printed
from tests.support.servers import serving

pytestmark = pytest.mark.processes

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scripts.md").read_text()
ADDRESS = "localhost:7433"
TABLE = """
offers = client.attach("d", lon=14.50, lat=35.89).subscribe(nearcast.TopK({"tea"}))
"""


async def test_the_programs_print_what_the_page_shows(tmp_path):
    search, watch, table, limits = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (shown,) = re.findall(r"It prints\n\n```\n(.*?)```", PAGE, re.DOTALL)
    settings = load_settings({"area": "14.18,35.80,14.58,36.09", "store": ":memory:", "port": 0})
    async with serving(settings) as server:
        assert await printed(search, ADDRESS, server.port, tmp_path) == shown
        change = "entered tea for two subscribed"
        assert f"`{change}`" in PAGE
        assert await printed(watch, ADDRESS, server.port, tmp_path) == f"{change}\n1 exact 0\n"
        rest = f"import nearcast.sync\n{limits}{TABLE}{table}print(*frame.columns, len(frame))\n"
        assert await printed(rest, ADDRESS, server.port, tmp_path) == "key lon lat distance_m 1\n"
