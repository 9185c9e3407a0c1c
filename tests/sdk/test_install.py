"""The SDK as `pip install ./nearcast` installs it: two packages, no command, nothing else imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
import nearcast
from nearcast.expressions import clauses_of
assert nearcast.__file__.startswith(sys.argv[1]), nearcast.__file__
assert clauses_of("tea AND NOT (milk OR sugar)")
rooms = {"bench", "cli", "engine", "feeds", "index", "server", "simulator", "streaming", "click", "numpy"}
assert not rooms & set(sys.modules), rooms & set(sys.modules)
"""


EVERY_MODULE = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import nearcast, safe_region
found = [name for package in (nearcast, safe_region)
         for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in found:
    importlib.import_module(name)
assert all(sys.modules[name].__file__.startswith(sys.argv[1]) for name in found)
print(len(found))
"""


def modules(folder: Path) -> set[str]:
    """Names of the modules below a folder of packages."""
    return {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for name in ("nearcast", "safe_region")
        for path in (folder / name).rglob("*.py")
        if "build" not in path.parts
    }


def declared(path: Path) -> dict:
    return tomllib.loads(path.read_text())["project"]


def copy_of_packages(folder: Path) -> Path:
    """Copy the packages of the SDK: a build leaves files beside its sources."""
    for package in ("nearcast", "safe_region"):
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("build", "*.egg-info")
        )
    return folder


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    source = copy_of_packages(tmp_path_factory.mktemp("source"))
    folder = tmp_path_factory.mktemp("sdk")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", str(folder), str(source / "nearcast")], check=True)
    return folder


@pytest.mark.processes
def test_it_runs_by_itself(installed):
    code = f"import sys; sys.path.insert(0, sys.argv[1]); {PROGRAM.strip().replace(chr(10), '; ')}"
    subprocess.run([sys.executable, "-c", code, str(installed)], check=True, cwd=installed)


@pytest.mark.processes
def test_all_of_its_modules_can_be_imported(installed):
    found = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE, str(installed)],
        check=True,
        capture_output=True,
        text=True,
        cwd=installed,
    )
    assert int(found.stdout) > 50


@pytest.mark.processes
def test_no_module_of_the_sdk_is_left_out(installed):
    assert modules(ROOT) == modules(installed)


@pytest.mark.processes
def test_it_knows_its_version(installed):
    """Without the project's own distribution on the path."""
    path = installed / "nearcast" / "version.py"
    code = "import runpy, sys; print(runpy.run_path(sys.argv[1])['installed_version']())"
    variables = {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-S", "-c", code, str(path)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=variables, cwd=installed
    )
    assert done.stdout.strip() == declared(ROOT / "nearcast" / "pyproject.toml")["version"]


@pytest.mark.processes
def test_an_editable_install_is_found_beside_a_folder_of_that_name(tmp_path):
    """Programs may be saved beside a clone, whose folder has the name of the package."""
    source, environment, beside = tmp_path / "source", tmp_path / "environment", tmp_path / "programs"
    copy_of_packages(source)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (beside / "nearcast").mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    build = "import sys; from setuptools.build_meta import build_editable; build_editable(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], check=True, cwd=source)
    (wheel,) = tmp_path.glob("*.whl")
    python = str(environment / "bin" / "python")
    pip = [sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet", "--no-deps"]
    variables = {name: one for name, one in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([*pip, "--no-index", str(wheel)], check=True, env=variables)
    code = "from importlib.util import find_spec; print(find_spec('nearcast').origin)"
    found = subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True, cwd=beside, env=variables
    )
    assert found.stdout.strip() == str(source / "nearcast" / "__init__.py")


@pytest.mark.processes
def test_it_brings_no_command_and_no_other_room(installed):
    names = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"nearcast", "safe_region"}
    assert (installed / "nearcast" / "py.typed").exists()


def test_it_is_declared_as_the_project_declares_it():
    sdk, project = declared(ROOT / "nearcast" / "pyproject.toml"), declared(ROOT / "pyproject.toml")
    assert sdk["version"] == project["version"]
    assert set(sdk["dependencies"]) == {one for one in project["dependencies"] if "click" not in one}
    assert "scripts" not in sdk
