"""How what is not installed is installed: one sentence for all messages. The project is on no index."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """Return what installs an extra of pyproject.toml.

    Parameters
    ----------
    extra
        Its name.
    """
    return f"pip install '.[{extra}]' in a checkout of nearcast"
