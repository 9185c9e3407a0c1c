"""Build the wheels of the SDK and the server: `python packaging/build_wheels.py FOLDER`.

They are built from a copy of the sources: setuptools leaves files beside what it builds, and would put
those of an earlier build into a wheel. It needs setuptools in this environment, and no network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = ("nearcast", "packaging/server")
_IGNORED = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")


def build(target: Path) -> None:
    """Build both wheels.

    Parameters
    ----------
    target
        Folder for the wheels; it need not exist.
    """
    with tempfile.TemporaryDirectory(prefix="nearcast-wheels-") as folder:
        copied = Path(folder)
        _copy(copied)
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        options = ["--no-deps", "--no-index", "--no-build-isolation", f"--wheel-dir={target.resolve()}"]
        subprocess.run([*pip, *options, *(f"./{name}" for name in PROJECTS)], check=True, cwd=copied)  # noqa: S603


def _copy(target: Path) -> None:
    """Copy the packages and the project files; the license into each project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["setuptools"]["packages"]["find"]["include"]
    for name in {"packaging", *(pattern.removesuffix("*") for pattern in packages)}:
        shutil.copytree(ROOT / name, target / name, ignore=_IGNORED)
    shutil.copy(ROOT / "pyproject.toml", target)
    for name in PROJECTS:
        shutil.copy(ROOT / "LICENSE", target / name)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
