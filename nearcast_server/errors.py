"""Errors of this package. Errors of the server, the indexes and the simulator pass unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nearcast_server.packages import FOLDER
from safe_region.extras import how_to_install


class StartError(Exception):
    """A server could not be started; the message names the reason."""


class MissingPackageError(ImportError):
    """A package cannot be imported; the message names it, and the extra that has it if one does."""


def missing_package(name: str | None, extra: str) -> MissingPackageError:
    """Return the error for a package that an extra has, or for one of ours that the app hides."""
    top = (name or "").partition(".")[0]
    if top and (FOLDER / top).is_dir():
        text = f"{name} cannot be imported: this program has a module {top!r} of its own"
        return MissingPackageError(text, name=name)
    return MissingPackageError(f"{name} is not installed: {how_to_install(extra)}", name=name)


@contextmanager
def requiring(extra: str) -> Iterator[None]:
    """Name the extra that has a package which the block cannot import.

    Raises
    ------
    MissingPackageError
        If a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_package(error.name, extra) from error
