"""What there is of the command line with the SDK's own packages, and what messages say of the others."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions, requires
from pathlib import Path

import click
import pytest

from cli import app as group
from cli.app import app
from tests.cli.test_serve import AREA, ROOT, Process

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]["name"]
OURS = PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]


def name_of(requirement) -> str:
    return re.match(r"[A-Za-z0-9_-]+", requirement)[0]


def needed(requirements) -> set[str]:
    """Names of distributions, with those that they need without an extra."""
    found: set[str] = set()
    open_names = [name_of(one) for one in requirements]
    while open_names:
        name = open_names.pop()
        if name in found or name == PROJECT:
            continue
        found.add(name)
        open_names += [name_of(one) for one in requires(name) or [] if ";" not in one]
    return found


@pytest.fixture(scope="module")
def sdk(tmp_path_factory):
    """Packages as `pip install .` installs them."""
    return installed(tmp_path_factory.mktemp("sdk"), PYPROJECT["project"]["dependencies"])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Packages as `pip install '.[server]'` installs them."""
    extra = PYPROJECT["project"]["optional-dependencies"]["server"]
    with_extras = ["cffi", "pycparser"]  # of pyjwt[crypto]
    requirements = [*PYPROJECT["project"]["dependencies"], *extra, *with_extras]
    return installed(tmp_path_factory.mktemp("server"), requirements)


def installed(folder, requirements) -> Path:
    """Fill a folder with packages: ours, and what they depend on."""
    for name in (*needed(requirements), PROJECT):
        found = distribution(name)
        for top in {path.parts[0] for path in found.files if path.parts[0] not in ("..", "__pycache__")}:
            target = folder / top
            if not target.exists() and not top.startswith("__editable__"):
                target.symlink_to(found.locate_file(top))
    for name in OURS:
        package = folder / name.removesuffix("*")
        package.unlink(missing_ok=True)
        package.symlink_to(ROOT / package.name)
    return folder


def run(site, *arguments):
    """The command line with these packages alone."""
    variables = {name: one for name, one in os.environ.items() if not name.startswith("NEARCAST_")}
    return subprocess.run(
        [sys.executable, "-S", "-m", "cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=site,
        env=variables | {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def commands_in(help_text) -> set[str]:
    (listed,) = re.findall(r"^Commands:\n((?:  .*\n?)+)", help_text, re.MULTILINE)
    return set(re.findall(r"^  ([a-z-]+)", listed, re.MULTILINE))


@pytest.mark.processes
def test_with_the_sdk_alone_there_are_the_commands_that_it_can_run(sdk):
    done = run(sdk, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert commands_in(done.stdout) == {"cluster", "forget", "inspect", "plan", "retract", "status"}
    for extra in ("server", "simulator"):
        assert f"Not installed (pip install '.[{extra}]' in a checkout of nearcast)" in done.stdout


@pytest.mark.processes
def test_they_run(sdk):
    process = Process(AREA, "--port=0", "--store=:memory:")
    try:
        done = run(sdk, "status", f"--server={process.target}")
        other = run(sdk, "inspect", "device", "nobody", f"--server={process.target}")
    finally:
        assert process.signal(signal.SIGTERM) == 0
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("SERVING")
    assert (other.returncode, other.stderr[:30]) == (1, "Error: device_id is 'nobody', ")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "extra"), [("serve", "server"), ("top", "server"), ("simulate", "simulator")]
)
def test_other_commands_show_how_to_install_them(sdk, name, extra):
    done = run(sdk, name)
    assert done.returncode == 2
    assert done.stderr.endswith(
        f"Error: {name} needs packages that are not installed: pip install '.[{extra}]' in a checkout "
        "of nearcast\n"
    )


def test_with_everything_there_is_every_command():
    assert set(app.commands) == set(group.COMMANDS)


@pytest.mark.processes
def test_with_the_servers_packages_its_commands_run(server, tmp_path):
    done = run(server, "--help")
    assert commands_in(done.stdout) == {
        name for name, one in group.COMMANDS.items() if one.extra in ("", "server")
    }
    (tmp_path / "documents").write_text("tea cake\n")
    store = tmp_path / "s.db"
    assert Process(AREA, "--port=0", f"--store={store}").signal(signal.SIGTERM) == 0
    for arguments in (
        ("serve", "--help"),
        ("compile", "--help"),
        ("indexes", "--json"),
        ("idf", "build", str(tmp_path / "documents"), f"--out={tmp_path / 'weights.json'}"),
        ("store", "info", str(store)),
        (
            "token",
            "ops",
            "--role=operator",
            f"--key={tmp_path / 'key.pem'}",
            f"--jwks={tmp_path / 'keys'}",
        ),
    ):
        done = run(server, *arguments)
        assert done.returncode == 0, done.stderr
    done = run(server, "serve", "--area=1,2,3")
    assert done.stderr.startswith("Error: --area is '1,2,3', must be")
    done = run(server, "top", "--once", "--server=localhost:1")
    assert done.stderr.startswith("Error: the server cannot be reached: UNAVAILABLE")


def test_the_module_of_an_extra_comes_with_it_and_not_with_a_smaller_one():
    extras = PYPROJECT["project"]["optional-dependencies"]
    server = needed(PYPROJECT["project"]["dependencies"]) | needed(extras["server"])
    simulator = server | needed(extras["simulator"])
    found = packages_distributions()
    for package in group.PACKAGES["server"]:
        assert {normal(one) for one in found[package]} <= {normal(one) for one in server}
    for package in set(group.PACKAGES["simulator"]) - set(group.PACKAGES["server"]):
        (name,) = {normal(one) for one in found[package]}
        assert name in {normal(one) for one in simulator}
        assert name not in {normal(one) for one in server}


def normal(name) -> str:
    return name.lower().replace("_", "-")


def test_nothing_names_a_package_of_an_index():
    """The project is on none: whoever registers its name there would be installed."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "ops").rglob("*.*")]
    sources = [path for name in OURS for path in (ROOT / name.removesuffix("*")).rglob("*.py")]
    wrong = re.compile(r"(?m)pip install[^`\n]*(?<! of)[ '\"]nearcast(-server|-dev)?([\[\s'\"`]|$)")
    assert wrong.search("pip install 'nearcast-server[gateway]'")
    assert [path for path in (*pages, *sources) if wrong.search(path.read_text(errors="replace"))] == []


# -- names of commands, and their helps ----------------------------------------------------------------


def commands(command=app, path=()):
    """Every command with its path."""
    yield path, command
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from commands(one, (*path, name))


@pytest.mark.processes
def test_related_commands_form_a_group():
    assert set(app.commands["stream"].commands) == {
        "run",
        "lists",
        "rebalance",
        "compact",
        "audit",
        "release",
        "demo",
    }
    assert [name for name in app.commands if "-" in name] == []


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_helps_speak_of_nothing_that_users_do_not_have(path):
    command = dict(commands())[path]
    with command.make_context("nearcast", [], resilient_parsing=True) as context:
        text = " ".join(command.get_help(context).split())
    for phrase in ("../shared", ".txt section", "nearcast[", "nearcast stream-"):
        assert phrase not in text, path
