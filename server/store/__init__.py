"""The store: what was acknowledged survives. SQLite in WAL mode, no set-up."""

from server.store.sqlite import SqliteStore

__all__ = ["SqliteStore"]
