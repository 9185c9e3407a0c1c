"""The wheels have all files of the checkout that belong to them, and declare the same requirements."""

from __future__ import annotations

import tomllib
from importlib.metadata import PathDistribution
from pathlib import Path
from zipfile import Path as ZipPath
from zipfile import ZipFile

import pytest

from tests.packaging.conftest import ROOT

PROJECTS = {
    name: tomllib.loads((ROOT / name / "pyproject.toml").read_text())
    for name in (".", "nearcast", "packaging/server")
}
OURS = PROJECTS["."]["tool"]["setuptools"]["packages"]["find"]["include"]
PACKAGES = {pattern.removesuffix("*") for pattern in OURS}
OF_THE_SDK = {"nearcast", "safe_region"}
PUBLIC = "nearcast_server"


def files_of(package: str) -> set[str]:
    """Files of a package in the checkout, without those that Python and setuptools leave."""
    left = {"__pycache__", "build"}
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / package).rglob("*")
        if path.is_file() and not left & set(path.parts) and ".egg-info" not in str(path)
    }


def files_in(wheel: Path) -> set[str]:
    """Files in a wheel, without its metadata."""
    names = ZipFile(wheel).namelist()
    return {name for name in names if ".dist-info/" not in name}


def metadata_of(wheel: Path) -> PathDistribution:
    name, version, *_ = wheel.name.split("-")
    return PathDistribution(ZipPath(wheel, f"{name}-{version}.dist-info/"))


@pytest.mark.processes
def test_the_sdk_is_two_packages(wheels):
    sdk, _ = wheels
    expected = set().union(*map(files_of, OF_THE_SDK)) - {"nearcast/pyproject.toml"}
    assert files_in(sdk) == expected
    assert metadata_of(sdk).requires == ["grpcio>=1.85", "protobuf>=7.36"]
    assert metadata_of(sdk).entry_points == ()


@pytest.mark.processes
def test_the_server_is_one_package_with_all_others_in_its_folder(wheels):
    _, server = wheels
    private = set().union(*map(files_of, PACKAGES - OF_THE_SDK - {PUBLIC}))
    assert files_in(server) == files_of(PUBLIC) | {f"{PUBLIC}/_packages/{name}" for name in private}
    assert "simulator/run_report/page.html.jinja" in private


@pytest.mark.processes
def test_both_have_the_license_and_types(wheels):
    for wheel, package in zip(wheels, ("nearcast", PUBLIC), strict=True):
        assert f"{package}/py.typed" in files_in(wheel)
        assert metadata_of(wheel).read_text("licenses/LICENSE") == (ROOT / "LICENSE").read_text()


def extras_of(project: str) -> dict[str, list[str]]:
    return PROJECTS[project]["project"]["optional-dependencies"]


def requirements_of(project: str, *extras: str) -> set[str]:
    """Requirements of a project file and of extras, without those that name our own distributions."""
    declared = PROJECTS[project]["project"]
    lists = [declared["dependencies"], *(extras_of(project)[extra] for extra in extras)]
    return {one for some in lists for one in some if not one.startswith("nearcast")}


def test_the_sdk_and_the_server_need_what_the_checkout_needs():
    sdk = requirements_of("nearcast")
    assert sdk == requirements_of(".") - {"click>=8.3"}
    assert sdk | requirements_of("packaging/server") == requirements_of(".", "server")


def test_the_server_has_all_extras_that_are_not_for_development():
    own, checkout = set(extras_of("packaging/server")), set(extras_of("."))
    assert own == checkout - {"server", "bench", "docs", "fuzz", "dev"}


@pytest.mark.parametrize("extra", sorted(extras_of("packaging/server")))
def test_extras_of_the_server_are_those_of_the_checkout(extra):
    own = requirements_of("nearcast") | requirements_of("packaging/server", extra)
    assert own == requirements_of(".", "server", extra)


def test_all_project_files_have_one_version():
    versions = {project["project"]["version"] for project in PROJECTS.values()}
    assert len(versions) == 1
    assert f"nearcast=={versions.pop()}" in PROJECTS["packaging/server"]["project"]["dependencies"]


def test_each_project_file_has_its_own_name():
    names = {project["project"]["name"] for project in PROJECTS.values()}
    assert names == {"nearcast-dev", "nearcast", "nearcast-server"}
