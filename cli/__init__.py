"""The command line. Each command imports the heavy modules that it needs."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from cli.app import app  # noqa: PLC0415 - so that parts of `cli` can be imported alone

    app()
