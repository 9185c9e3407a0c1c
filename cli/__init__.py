"""The command line. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from cli.app import app  # noqa: PLC0415 - the SDK installs without click
    except ImportError as error:
        sys.exit(f"the command line needs more packages ({error}): pip install 'nearcast[simulator]'")
    app()
