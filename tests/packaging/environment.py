"""Virtual environments with our wheels, the packages that these declare, and nothing else.

The packages are links to those of this environment, so nothing is downloaded. A package that a wheel
needs and does not declare is not there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OURS = ("nearcast", "nearcast-server")


class Environment:
    """An environment in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (self.site,) = (folder / "lib").glob("python3.*/site-packages")

    def command(self, name: str) -> str:
        """Return the path of a program of this environment."""
        return str(self.folder / "bin" / name)

    def run(
        self, name: str, *arguments: str, folder: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of this environment, away from the checkout."""
        return subprocess.run(
            [self.command(name), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder or self.folder,
            env=self.variables() | variables,
        )

    def variables(self) -> dict[str, str]:
        """Return the variables of this process, without those that change imports or settings."""
        changing = ("NEARCAST", "PYTHON")
        return {name: one for name, one in os.environ.items() if not name.startswith(changing)}

    def files(self) -> set[str]:
        """Return the files of our wheels in site-packages."""
        found = [one for one in distributions(path=[str(self.site)]) if one.name in OURS]
        paths = [path for one in found for path in one.files or ()]
        return {path.as_posix() for path in paths if path.parts[0] != ".." and path.suffix != ".pyc"}


def linked_environment(folder: Path, wheels: Iterable[Path], chosen: str) -> Environment:
    """Make an environment of wheels and of links to what a requirement needs.

    Parameters
    ----------
    folder
        Folder of the environment.
    wheels
        Our wheels.
    chosen
        The requirement: one of our distributions, perhaps with extras.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    environment = Environment(folder)
    pip = [sys.executable, "-m", "pip", f"--python={environment.command('python')}", "install"]
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, *options, *map(str, wheels)], check=True)
    own = {canonicalize_name(one.name): one for one in distributions(path=[str(environment.site)])}
    for found in needed(chosen, own):
        link(found, environment.site)
    return environment


def needed(chosen: str, own: dict[str, Distribution]) -> Iterator[Distribution]:
    """Yield the distributions, other than our own, that a requirement needs."""
    waiting, seen = [Requirement(chosen)], set[tuple[str, str]]()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        found = own.get(name) or distribution(name)
        if name not in own and not any(name == one for one, _ in seen):
            yield found
        for extra in {"", *requirement.extras} - {extra for one, extra in seen if one == name}:
            seen.add((name, extra))
            declared = map(Requirement, found.requires or ())
            waiting += [one for one in declared if applies(one, extra)]


def applies(requirement: Requirement, extra: str) -> bool:
    """Return whether a requirement is one of this machine and of an extra; empty for no extra."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def link(found: Distribution, site: Path) -> None:
    """Link the packages and the metadata of a distribution."""
    metadata = Path(str(found._path))  # noqa: SLF001 - no other way to old metadata
    source = metadata.parent
    (site / metadata.name).symlink_to(metadata)
    for top in {path.parts[0] for path in found.files or ()} - {"..", "__pycache__", metadata.name}:
        if (source / top / "__init__.py").exists() or (source / top).is_file():
            (site / top).symlink_to(source / top)
        else:  # others may have files in this folder as well
            link_files([path for path in found.files or () if path.parts[0] == top], source, site)


def link_files(paths: Iterable[Path], source: Path, site: Path) -> None:
    """Link files of a folder, except those that do not exist."""
    for path in paths:
        if (source / path).exists() and path.suffix != ".pyc":
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).symlink_to(source / path)
