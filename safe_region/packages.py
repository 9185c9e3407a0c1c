"""Folders of nearcast's packages. A checkout has them in one folder, an installation in two."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def package_folder(name: str) -> Path | None:
    """Return the folder from which a package is imported; None if it is not installed.

    Parameters
    ----------
    name
        The name of a package at the top, such as ``"index"``. It is not imported.
    """
    spec = find_spec(name)
    folders = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(folders))).resolve() if folders else None
