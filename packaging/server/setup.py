"""The packages of the server's distribution: those of the checkout, in a folder of `nearcast_server`."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from setuptools import find_packages, setup

PUBLIC = "nearcast_server"
PRIVATE = f"{PUBLIC}._packages"
ROOT = Path(__file__).resolve().parents[2]
OF_THE_SDK = {"nearcast", "safe_region"}


def private_packages() -> list[str]:
    """Return the packages at the top of the checkout that no app imports."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["packages"]["find"]["include"]
    return sorted({pattern.removesuffix("*") for pattern in patterns} - OF_THE_SDK - {PUBLIC})


def data_of(package: str) -> Iterator[str]:
    """Yield the files of a package that are not Python."""
    for path in sorted((ROOT / package).rglob("*")):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            yield path.relative_to(ROOT / package).as_posix()


names = private_packages()
parts = find_packages(str(ROOT), include=[pattern for name in names for pattern in (name, f"{name}.*")])
setup(
    packages=[PUBLIC, *(f"{PRIVATE}.{name}" for name in parts)],
    package_dir={PUBLIC: f"../../{PUBLIC}", **{f"{PRIVATE}.{name}": f"../../{name}" for name in names}},
    package_data={PUBLIC: ["py.typed"], **{f"{PRIVATE}.{name}": list(data_of(name)) for name in names}},
)
