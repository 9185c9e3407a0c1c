"""The losses of a store before it is opened: each loss is reported, and refused unless it is accepted.

The files are examined in this order, before SQLite opens anything to write: the database beside its log,
the log (`server.store.log_frames`), and the mark of acknowledged commits (`server.store.mark`).
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from pathlib import Path

from server.errors import StoreError
from server.store import files, log_frames, opening, reading, schema
from server.store import mark as marks

_log = logging.getLogger(__name__)


class Losses:
    """The losses of a store.

    Parameters
    ----------
    path
        The store.
    is_accepted
        Whether losses are logged and the store is used, or refused.
    """

    def __init__(self, path: str, *, is_accepted: bool) -> None:
        self.path = path
        self.is_accepted = is_accepted
        self.count = 0
        self.may_rename = True

    def add(self, damage: str, lost: str) -> None:
        """Refuse a loss, or log that it is accepted.

        Raises
        ------
        StoreError
            If it is not accepted.
        """
        if not self.is_accepted:
            raise StoreError(f"store {self.path} is damaged: {damage}: {lost}; {reading.ADVICE}")
        self.count += 1
        _log.warning("store %s is damaged, the loss is accepted: %s: %s", self.path, damage, lost)


def require_database(path: Path | str) -> None:
    """Verify that an absent or empty database has no log with data beside it.

    Raises
    ------
    StoreError
        If it has one.
    """
    losses = Losses(files.resolved(path), is_accepted=False)
    losses.may_rename = False
    _look_at_database(losses)


def look(losses: Losses) -> marks.Mark | None:
    """Examine all files of a store before it is opened to write; return its mark.

    The log is truncated after its last commit. If a loss is accepted, files that cannot be used are
    renamed.

    Raises
    ------
    StoreError
        If acknowledged data is lost and the loss is not accepted; nothing is changed.
    """
    _look_at_database(losses)
    state = _look_at_log(losses)
    known = _look_at_mark(losses)
    if state.end_bytes < state.size_bytes:  # a transaction that was in progress, or an accepted loss
        log_frames.cut(f"{losses.path}{files.LOG}", state.end_bytes)
    return known


def look_only(losses: Losses) -> None:
    """Examine all files of a store and change nothing; a server may have it open.

    Raises
    ------
    StoreError
        If acknowledged data is lost and the loss is not accepted.
    """
    files.require_one_name(losses.path)
    if files.in_use(losses.path):  # its server has examined them, and its log changes
        return
    losses.may_rename = False
    _look_at_database(losses)
    state = log_frames.examine(f"{losses.path}{files.LOG}")
    if not files.in_use(losses.path):
        _name_damage(losses, state)
        _look_at_mark(losses)


def _look_at_database(losses: Losses) -> None:
    path = losses.path
    if files.size_of(path):
        return
    state = "is empty" if Path(path).exists() else "is absent"
    for suffix in (files.LOG, files.JOURNAL):
        size = files.size_of(f"{path}{suffix}")
        if not size:
            continue
        held = f"its {suffix[1:]} of {size:,} bytes"
        if suffix == files.LOG:
            log = log_frames.examine(f"{path}{suffix}")
            held = f"its log of {log.commit_count:,} commits and {size:,} bytes"
        losses.add(f"the database {state} beside {held}", "all of the store would be lost")
        _set_aside(losses, f"{path}{suffix}")
    known = _mark_of(losses)
    if known is not None and known.commit_count:
        losses.add(
            f"the database {state}", f"all {known.commit_count:,} acknowledged commits would be lost"
        )


def _look_at_log(losses: Losses) -> log_frames.LogState:
    name = f"{losses.path}{files.LOG}"
    state = log_frames.examine(name)
    _name_damage(losses, state)
    if state.damage and not state.end_bytes:
        _set_aside(losses, name)
        return log_frames.NOTHING
    return state


def _name_damage(losses: Losses, state: log_frames.LogState) -> None:
    if state.damage:
        losses.add(f"its log {losses.path}{files.LOG}: {state.damage}", _lost_of(state))


def _lost_of(state: log_frames.LogState) -> str:
    if not state.lost_frame_count:
        return f"all of its {state.size_bytes:,} bytes would be lost"
    return (
        f"the last {state.lost_commit_count:,} commits ({state.lost_frame_count:,} pages) would be lost, "
        f"{state.commit_count:,} before them are intact"
    )


def _look_at_mark(losses: Losses) -> marks.Mark | None:
    known = _mark_of(losses)
    if known is None or not known.commit_count or not files.size_of(losses.path):
        return known
    with contextlib.closing(opening.connected(losses.path, read_only=True)) as database:
        try:
            store_id, commit_count = _counted(database, losses.path)
        except (sqlite3.Error, UnicodeError, reading.Damage) as error:
            losses.add(reading.without_values(error), "whether the last commits are present is unknown")
            return known
    mark_name = f"{losses.path}{files.MARK}"
    if commit_count and store_id != known.store_id:
        losses.add(f"{mark_name} belongs to another store", "another database was served here before")
    elif commit_count < known.commit_count:
        lost = known.commit_count - commit_count
        losses.add(
            f"it has {commit_count:,} commits, {mark_name} records {known.commit_count:,}",
            f"the last {lost:,} acknowledged commits are missing",
        )
    return known


def _counted(database: sqlite3.Connection, path: str) -> tuple[str, int]:
    """Return the id of a store and the number of its commits. Raises Damage if they are damaged."""
    (table_count,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not table_count:
        return "", 0
    opening.require_store(database, path)
    commit_count = int(reading.setting(database, schema.META_COMMITS) or "0")
    store_id = reading.setting(database, schema.META_STORE)
    if commit_count and store_id is None:
        raise reading.Damage(f"it has no {schema.META_STORE}")
    return store_id or "", commit_count


def _mark_of(losses: Losses) -> marks.Mark | None:
    """Return the mark of a store. A damaged mark is no loss by itself."""
    try:
        return marks.read(losses.path)
    except marks.MarkError as error:
        _log.warning(
            "%s%s is damaged: %s; the server cannot verify that the last commits are present",
            losses.path,
            files.MARK,
            error,
        )
        _set_aside(losses, f"{losses.path}{files.MARK}")
        return None


def _set_aside(losses: Losses, name: str) -> None:
    """Rename a file that cannot be used."""
    if not losses.may_rename:
        return
    number = 1
    while Path(f"{name}.lost{number}").exists():
        number += 1
    Path(name).rename(f"{name}.lost{number}")
    _log.warning("%s was renamed to %s.lost%d", name, name, number)
