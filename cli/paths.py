"""Types of path arguments: paths on this machine's disk, or URIs of file systems that Spark supports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

_URI = re.compile(r"[a-z][a-z0-9+.-]*:/")


def is_uri(value: object) -> bool:
    """Return whether a value is a URI, which names its file system."""
    return _URI.match(str(value)) is not None


class LocalPath(click.Path):
    """A path on this machine's disk."""

    def __init__(self, **more: bool) -> None:
        super().__init__(path_type=Path, **more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument."""
        if is_uri(value):
            self.fail(f"{str(value)!r} must be a path on this machine's disk, not a URI", param, ctx)
        return super().convert(value, param, ctx)


class Folder(click.ParamType[Any]):
    """A path, or a URI of a file system that Spark supports.

    Parameters
    ----------
    exists
        Whether a path must exist already.
    """

    name = "FOLDER"

    def __init__(self, *, exists: bool = False) -> None:
        self._path = click.Path(exists=exists, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument."""
        return str(value) if is_uri(value) else self._path.convert(value, param, ctx)


FOLDER = Folder()


def local_folder(chosen: Path | None, folder: Path | str, flag: str) -> Path:
    """Return the folder for files that belong on this machine: the user's choice, or the simulation's.

    Parameters
    ----------
    chosen
        Folder that the user chose; None for no choice.
    folder
        Folder of a simulation.
    flag
        Flag of the choice. The user must pass it if `folder` is a URI.
    """
    if chosen is not None:
        return chosen
    if isinstance(folder, Path):
        return folder
    raise click.BadParameter(
        f"must be a folder on this machine's disk if FOLDER is a URI: {folder!r}",
        param_hint=flag,
    )
