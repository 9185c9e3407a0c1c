"""The store: acknowledged changes survive. SQLite in WAL mode, without set-up."""

from server.store.checking import check
from server.store.compacting import compact
from server.store.copies import backup, restore
from server.store.facts import facts
from server.store.losses import require_database
from server.store.sqlite import SqliteStore
from server.store.sqlite_version import log_sqlite_version

__all__ = [
    "SqliteStore",
    "backup",
    "check",
    "compact",
    "facts",
    "log_sqlite_version",
    "require_database",
    "restore",
]
