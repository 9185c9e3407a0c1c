"""The command `nearcast` of an installation, also `python -m nearcast_server`."""

from __future__ import annotations

from nearcast_server.packages import import_first


def main() -> None:
    """Run the command line."""
    import_first()
    from cli import main as run  # noqa: PLC0415 - importable only now

    run()


if __name__ == "__main__":
    main()
