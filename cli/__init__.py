"""The command line. Everything heavy is imported by the command that needs it."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from cli.app import app  # noqa: PLC0415 - so that `cli` can be imported for a part of it

    app()
