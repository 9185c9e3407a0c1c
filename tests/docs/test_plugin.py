"""An index of another package is used by a server under its name (examples/clause_lists.py)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

import nearcast
from nearcast import Boolean, Circle, GeoObject
from tests.cli.test_serve import AREA, COMMAND, ROOT, Process

NAME = "clause-lists"


@pytest.fixture
def environment(tmp_path):
    """Install the example as a package, declared as docs/how-to/add-an-index.md shows it."""
    page = (ROOT / "docs" / "how-to" / "add-an-index.md").read_text()
    (group, name, value) = re.search(
        r'\[project\.entry-points\."(\S+)"\]\n\s*(\S+) = "(\S+)"', page
    ).groups()
    assert name == NAME
    folder = tmp_path / "site"
    facts = folder / "clause_lists-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: clause-lists\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")
    shutil.copy(ROOT / "examples" / "clause_lists.py", folder)
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}


@pytest.mark.processes
async def test_a_server_uses_it(environment):
    server = Process(
        AREA,
        "--port=0",
        "--store=:memory:",
        f"--clause-index={NAME}",
        environment=environment,
    )
    try:
        async with nearcast.connect(server.target) as client:
            device = await client.attach("device-1", lon=14.5, lat=35.5)
            lunch = await device.subscribe(
                Boolean("sushi AND lunch", Circle(1000.0, center=(14.5, 35.5)))
            )
            near, far = (14.501, 35.5), (14.6, 35.5)
            objects = [
                GeoObject({"sushi", "lunch"}, lon=near[0], lat=near[1], ttl_s=60, key="match"),
                GeoObject({"sushi"}, lon=near[0], lat=near[1], ttl_s=60, key="one keyword"),
                GeoObject({"sushi", "lunch"}, lon=far[0], lat=far[1], ttl_s=60, key="far away"),
            ]
            await client.publisher().publish(objects)
            await client.sync()
            assert [match.object.key for match in lunch.results()] == ["match"]
    finally:
        assert server.signal(signal.SIGTERM) == 0


@pytest.mark.processes
def test_it_is_listed_with_its_package(environment):
    done = subprocess.run(
        [*COMMAND, "indexes"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    assert re.search(rf"^  {NAME} +clause-lists 1\.0 +a plug-in$", done.stdout, re.MULTILINE)


@pytest.mark.processes
def test_nothing_that_no_package_declares_is_imported(environment):
    program = (
        "from index.entry import Entry\n"
        "for path in ('clause_lists:Box', 'os:system'):\n"
        "    try:\n"
        "        Entry(path, plugin_of='clause_index')()\n"
        "    except TypeError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    refused = "{} is not a class of index.*\n"
    assert done.stdout == refused.format("clause_lists:Box") + refused.format("os:system")
