"""Word the install hint for missing packages, the same in all messages. The project is on no index."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of the distribution that is installed.

    Parameters
    ----------
    extra
        The name of the extra.
    """
    return f"pip install '{_project()}[{extra}]' in a checkout of nearcast"


def _project() -> str:
    """Return the folder of the project file, in a checkout."""
    try:
        distribution("nearcast-server")
    except PackageNotFoundError:
        return "."
    return "./packaging/server"
