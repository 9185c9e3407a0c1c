"""Word the install hint for missing packages, the same in all messages. The project is on no index."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of pyproject.toml.

    Parameters
    ----------
    extra
        The name of the extra.
    """
    return f"pip install '.[{extra}]' in a checkout of nearcast"
