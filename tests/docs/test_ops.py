"""The files under ops: they name settings, packages, commands and options that exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from cli.app import app
from cli.options import given
from cli.settings_errors import read_settings
from cluster.local_servers import program
from gateway.settings import GatewaySettings
from server.settings import ServerSettings

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "ops" / "Dockerfile").read_text()
COMPOSE, CLUSTER = (
    (ROOT / "ops" / f"{name}.yaml").read_text() for name in ("compose", "compose.cluster")
)
SERVICES = yaml.safe_load(COMPOSE)["services"]
FILES = {name: yaml.safe_load(text) for name, text in (("one", COMPOSE), ("cluster", CLUSTER))}
LOG_SERVER = ["nats-server", "-c"]
"""The start of the command of a server of a log."""
RUNNING = [
    pytest.param(service, id=f"{file}-{name}")
    for file, content in FILES.items()
    for name, service in content["services"].items()
    if service.get("entrypoint", [])[:2] != LOG_SERVER
]
LOGS = {name: one for name, one in FILES["cluster"]["services"].items() if name.startswith("log")}
UNITS = sorted((ROOT / "ops" / "systemd").glob("*.service"))
SETTINGS = {"serve": ServerSettings, "gateway": GatewaySettings}
OF_CLIENTS = {"server", "token", "token_file", "tls", "tls_roots", "tls_server_name"}
"""Variables of `nearcast status` and the like."""


def stages() -> dict[str, str]:
    """The stages of the Dockerfile by name, each with the text of those that it continues."""
    found: dict[str, str] = {}
    for part in re.split(r"^(?=FROM )", DOCKERFILE, flags=re.MULTILINE)[1:]:
        base, name = re.match(r"FROM (\S+) AS (\S+)\n", part).groups()
        found[name] = found.get(base, "") + part
    return found


def command_of(stage: str) -> list[str]:
    return json.loads(re.search(r"^ENTRYPOINT (.*)$", stages()[stage], re.MULTILINE)[1])


def require_options(command: list[str]) -> None:
    """Fail if a command line of nearcast names a command or an option that does not exist."""
    program, name, *arguments = command
    assert Path(program).name == "nearcast"
    found = app.commands[name]
    known = {option for one in found.get_params(click.Context(found)) for option in one.opts}
    used = {one.partition("=")[0] for one in arguments if one.startswith("-")}
    assert used <= known, used - known


@pytest.mark.parametrize(
    "text",
    [
        DOCKERFILE,
        COMPOSE,
        CLUSTER,
        *(unit.read_text() for unit in UNITS if unit.stem != "nearcast-log"),
    ],
    ids=range(2 + len(UNITS)),
)
def test_variables_are_settings(text):
    names = {name.lower() for name in re.findall(r"\bNEARCAST_([A-Z_]+)", text)}
    assert names
    of_gateways = {name.removeprefix("gateway_") for name in names if name.startswith("gateway_")}
    assert of_gateways <= set(GatewaySettings.model_fields)
    of_servers = {name for name in names if not name.startswith("gateway_")}
    assert of_servers - OF_CLIENTS <= set(ServerSettings.model_fields)


def test_the_image_has_every_package_and_nothing_else():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = pyproject["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = {name.removesuffix("*") for name in found}
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    copied = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert copied == packages | {"pyproject.toml", "constraints.txt", "packaging", "LICENSE"}


def test_the_image_has_extras_that_exist():
    pyproject = tomllib.loads((ROOT / "packaging" / "server" / "pyproject.toml").read_text())
    (extras,) = re.findall(r"nearcast_server-\*\.whl\)\[(\S+)\]", DOCKERFILE)
    assert set(extras.split(",")) <= set(pyproject["project"]["optional-dependencies"])


def test_images_start_existing_commands_as_an_unprivileged_user():
    assert command_of("server") == ["nearcast", "serve"]
    assert command_of("gateway") == ["nearcast", "gateway"]
    assert list(stages())[-1] == "server", "the image without --target"
    for name in ("server", "gateway"):
        require_options(command_of(name))
        assert "\nUSER 10001\n" in stages()[name]
    user = stages()["server"].index("USER 10001")
    assert user < stages()["server"].index("RUN nearcast compile"), "the owner of the cache"


@pytest.mark.parametrize(
    ("stage", "settings"), [("server", ServerSettings), ("gateway", GatewaySettings)]
)
def test_images_open_the_ports_of_the_settings(stage, settings):
    (port,) = re.findall(r"^EXPOSE (\d+)$", stages()[stage], re.MULTILINE)
    assert int(port) == settings.model_fields["port"].default
    assert all(f":{port}:{port}" in one for one in SERVICES[stage]["ports"])


@pytest.mark.parametrize("service", RUNNING)
def test_services_are_built_from_stages_and_started_with_settings_that_are_valid(service, monkeypatch):
    build = service["build"]
    assert (ROOT / "ops" / build["context"]).resolve() == ROOT
    assert ROOT / build["dockerfile"] == ROOT / "ops" / "Dockerfile"
    command = [*command_of(build["target"]), *service["command"]]
    require_options(command)
    for variable, value in service["environment"].items():
        monkeypatch.setenv(variable, value)
    for variable in re.findall(r"NEARCAST_\w*HOST=\S+", stages()[build["target"]]):
        monkeypatch.setenv(*variable.split("="))
    _, subcommand, *arguments = command
    flags = app.commands[subcommand].make_context(subcommand, arguments).params
    read_settings(SETTINGS[subcommand], given(flags), None)


@pytest.mark.parametrize("name", FILES)
def test_services_use_volumes_and_services_of_the_file(name):
    declared = FILES[name]
    for service in declared["services"].values():
        sources = [one.partition(":")[0] for one in service.get("volumes", ())]
        files = {one for one in sources if one.startswith("./")}
        assert all((ROOT / "ops" / one).is_file() for one in files)
        assert set(sources) - files <= set(declared["volumes"])
        assert set(service.get("depends_on", ())) <= set(declared["services"])
        assert service["healthcheck"]["test"][0] == "CMD"


def test_the_nodes_of_a_cluster_name_its_servers_and_themselves():
    services = FILES["cluster"]["services"]
    nodes = {name: one for name, one in services.items() if name.startswith("node")}
    for name, node in nodes.items():
        assert node["command"] == ["--advertise", f"{name}:7433"]
        environment = node["environment"]
        assert environment["NEARCAST_LOG"] == ",".join(f"nats://{one}:4222" for one in LOGS)
        assert environment["NEARCAST_LOG_MONITOR"] == ",".join(f"http://{one}:8222" for one in LOGS)
    assert services["gateway"]["command"][1] == ",".join(f"{one}:7433" for one in nodes)


@pytest.mark.processes
@pytest.mark.skipif(program() is None, reason="nats-server is not installed")
@pytest.mark.parametrize("name", LOGS)
def test_servers_of_a_log_understand_their_configuration(name):
    environment = LOGS[name]["environment"]
    assert environment["LOG_NAME"] == name
    assert environment["LOG_ROUTES"] == json.dumps([f"nats://{one}:6222" for one in LOGS])
    path = ROOT / "ops" / "log" / "nats.conf"
    assert "sync_interval: always" in path.read_text()
    done = subprocess.run(
        [program(), "-t", "-c", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr


def test_status_is_a_command():
    require_options(SERVICES["server"]["healthcheck"]["test"][1:])


@pytest.mark.parametrize("unit", UNITS, ids=lambda one: one.stem)
def test_units_start_existing_commands(unit):
    (line,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)
    command = shlex.split(line)
    if Path(command[0]).name == LOG_SERVER[0]:
        assert command[1:] == ["-c", "/etc/nearcast/nats.conf"]
    else:
        require_options(command)


@pytest.mark.parametrize("unit", UNITS, ids=lambda one: one.stem)
def test_units_with_metrics_of_the_process_can_read_proc_stat(unit):
    """The library of the metrics collects none of the process without the time of the boot there."""
    is_log = LOG_SERVER[0] in unit.read_text()
    assert is_log or "ProcSubset" not in unit.read_text()


@pytest.mark.processes
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd does not exist")
@pytest.mark.parametrize("unit", UNITS, ids=lambda one: one.stem)
def test_units_are_understood(unit):
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if unit.name in line]
    assert [line for line in complaints if "is not executable" not in line] == []
