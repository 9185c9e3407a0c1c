"""The SDK and the server as they are installed: their names, commands, processes and kernels."""

from __future__ import annotations

import json
import re
import time

import pytest
import yaml

from cli.app import COMMANDS
from tests.packaging.conftest import NAIVE, ROOT
from tests.packaging.programs import Program
from tests.packaging.test_wheels import OF_THE_SDK, PACKAGES, PROJECTS

pytestmark = pytest.mark.processes

CONNECTED_S = 60
"""A gateway that is not ready by then does not reach its server."""

FOUND = f"""
from importlib.util import find_spec
print(*(name for name in {sorted(PACKAGES)} if find_spec(name) is not None))
"""
EVERY_MODULE_OF_THE_SDK = """
import importlib, pkgutil
import nearcast, safe_region
for package in (nearcast, safe_region):
    for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            assert name.startswith("safe_region."), name
            assert error.name in ("numba", "numpy", "platformdirs", "shapely"), error
"""
APP = """
import sys
import nearcast.sync
from nearcast import GeoObject, TopK

with nearcast.sync.connect(sys.argv[1]) as client:
    device = client.attach("device-1", lon=14.50, lat=35.89)
    tea = device.subscribe(TopK({"tea"}, k=1, distance_scale_m=5000))
    client.publisher().publish([GeoObject({"tea"}, lon=14.51, lat=35.90, ttl_s=60, payload=b"for two")])
    client.sync()
    print(*(match.object.payload.decode() for match in tea.exact_results()))
"""
LIBRARY = f"""
import nearcast.sync
import nearcast_server

options = {dict(one.removeprefix("--").replace("-", "_").split("=") for one in NAIVE)}
with nearcast_server.serve((14.18, 35.80, 14.58, 36.09), **options) as server:
    with nearcast.sync.connect(server.address) as client:
        print(client.status().gauges["kernels_compiled"])
print(type(nearcast_server.make_index("naive", "object")).__name__)
"""


def output(environment, name, *arguments, **options) -> str:
    """What a program prints that has to succeed."""
    done = environment.run(name, *arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands_in(help_text) -> set[str]:
    (listed,) = re.findall(r"^Commands:\n((?:  .*\n?)+)", help_text, re.MULTILINE)
    return set(re.findall(r"^  ([a-z-]+)", listed, re.MULTILINE))


def top_levels(environment) -> set[str]:
    names = {name.partition("/")[0] for name in environment.files()}
    return {name for name in names if not name.endswith(".dist-info")}


def test_names_at_the_top_of_site_packages(sdk, server):
    assert top_levels(sdk) == OF_THE_SDK
    assert top_levels(server) == OF_THE_SDK | {"nearcast_server"}


def test_packages_of_the_server_can_be_imported_after_nearcast_server(sdk, server):
    assert set(output(sdk, "python", "-c", FOUND).split()) == OF_THE_SDK
    public = OF_THE_SDK | {"nearcast_server"}
    assert set(output(server, "python", "-c", FOUND).split()) == public
    assert set(output(server, "python", "-c", f"import nearcast_server{FOUND}").split()) == PACKAGES


def test_modules_of_the_sdk_need_no_more_than_it_declares(sdk):
    """Kernels and pictures need more: apps import neither, and both are in a package of the SDK."""
    output(sdk, "python", "-c", EVERY_MODULE_OF_THE_SDK)


def test_the_command_has_its_version_and_all_subcommands(server):
    version = PROJECTS["nearcast"]["project"]["version"]
    assert output(server, "nearcast", "--version") == f"nearcast, version {version}\n"
    help_text = output(server, "nearcast", "--help")
    assert commands_in(help_text) == set(COMMANDS)
    assert output(server, "python", "-m", "nearcast_server", "--version").endswith(f"{version}\n")


def test_without_an_extra_its_commands_show_how_to_install_it(bare):
    help_text = output(bare, "nearcast", "--help")
    assert commands_in(help_text) == {
        name for name, one in COMMANDS.items() if one.extra in ("", "server")
    }
    hints = re.findall(r"Not installed \(pip install '(\S+)\[(\S+)\]' in a checkout", help_text)
    assert {extra for _, extra in hints} == {"gateway", "simulator"}
    assert {project for project, _ in hints} == {"./packaging/server"}
    assert {"gateway", "simulator"} <= PROJECTS["packaging/server"]["project"][
        "optional-dependencies"
    ].keys()


def test_an_app_uses_a_server(sdk, running):
    assert output(sdk, "python", "-c", APP, running.address) == "for two\n"


def test_a_server_finds_the_kernels_that_were_compiled_before(server, kernels, running):
    _, text = kernels
    assert int(re.match(r"(\d+) kernels compiled", text)[1]) > 0
    found = json.loads(output(server, "nearcast", "status", "--json", f"--server={running.address}"))
    assert found["gauges"]["kernels_compiled"] == 0


def test_a_gateway_starts(server, running):
    """The check of the compose file finds it when it has connected to the server."""
    arguments = ("gateway", f"--server={running.address}", "--port=0")
    services = yaml.safe_load((ROOT / "ops" / "compose.yaml").read_text())["services"]
    _, program, *check = services["gateway"]["healthcheck"]["test"]
    with Program(server, "gateway on ", *arguments) as gateway:
        check = [one.replace("127.0.0.1:7480", gateway.address) for one in check]
        deadline_s = time.monotonic() + CONNECTED_S
        while server.run(program, *check).returncode != 0:
            assert time.monotonic() < deadline_s


def test_a_program_uses_the_server_as_a_library(server, kernels, tmp_path):
    """Beside modules of its own with the names of packages of the server."""
    for name in ("server", "cli", "engine"):
        (tmp_path / f"{name}.py").write_text("raise AssertionError('not imported')\n")
    (tmp_path / "app.py").write_text(LIBRARY)
    done = output(server, "python", "app.py", folder=tmp_path, NUMBA_CACHE_DIR=kernels[0])
    assert done.splitlines() == ["0", "NaiveObjectIndex"]


def test_a_module_that_hides_a_package_is_named(server, tmp_path):
    (tmp_path / "index.py").touch()
    (tmp_path / "app.py").write_text("import nearcast_server\nnearcast_server.make_index('iqf-plus')\n")
    done = server.run("python", "app.py", folder=tmp_path)
    assert done.stderr.endswith(
        "index.square cannot be imported: this program has a module 'index' of its own\n"
    )


def test_an_index_of_another_package_is_found(server, tmp_path):
    """In a folder on the path of the caller, which the command keeps."""
    facts = tmp_path / "clause_lists-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: clause-lists\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[nearcast.clause_index]\nlists = clause_lists:ClauseLists\n")
    (tmp_path / "clause_lists.py").write_text((ROOT / "examples" / "clause_lists.py").read_text())
    variables = {"PYTHONPATH": str(tmp_path)}
    assert re.search(
        r"lists +clause-lists 1\.0 +a plug-in", output(server, "nearcast", "indexes", **variables)
    )
    made = "import nearcast_server; print(nearcast_server.make_index('lists', 'clause'))"
    assert "ClauseLists object" in output(server, "python", "-c", made, **variables)
