"""Word the install hint for missing packages, the same in all messages. The project is on no index."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of the distribution that is installed.

    Parameters
    ----------
    extra
        The name of the extra, or several names with commas, in the checkout's project.
    """
    project, names = ".", extra.split(",")
    if _is_server_installed():
        project, names = "./packaging/server", [name for name in names if name != "server"]
    return f"pip install '{project}[{','.join(names)}]' in a checkout of nearcast"


def _is_server_installed() -> bool:
    """Return whether the server's own distribution is installed, which has no extra `server`."""
    try:
        distribution("nearcast-server")
    except PackageNotFoundError:
        return False
    return True
