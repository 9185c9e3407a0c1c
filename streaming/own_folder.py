"""Folders and files of a job that no other user may read or change."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_FOLDER, _FILE = 0o700, 0o600
_OTHERS = 0o077


class OwnFolderError(Exception):
    """A folder is not private to this user, so its contents cannot be trusted."""


def own_folder(path: Path) -> Path:
    """Create a folder that is private to this user, or check that it is; return its path.

    Its parent folders must exist.

    Raises
    ------
    OwnFolderError
        If the folder is a link, belongs to another user, or may be read or changed by others. Also if
        others could rename it: its parent folder belongs to another user, or all may write to the parent
        and it is not sticky.
    """
    around = path.parent.stat()
    if around.st_mode & stat.S_IWOTH and not around.st_mode & stat.S_ISVTX:
        raise OwnFolderError(f"{path.parent} is writable by all users, must be sticky or private")
    if around.st_uid not in (0, os.geteuid()):
        raise OwnFolderError(
            f"{path.parent} belongs to user {around.st_uid}, must be this user's or the system's"
        )
    with suppress(FileExistsError):
        path.mkdir(mode=_FOLDER)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise OwnFolderError(f"{path} must be a folder, not a link: remove it")
    if found.st_uid != os.geteuid():
        raise OwnFolderError(f"{path} belongs to user {found.st_uid}, must be this user's: remove it")
    if found.st_mode & _OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise OwnFolderError(
            f"{path} has mode {mode:04o}, must have 0700: other users may have changed it"
        )
    return path


def write_own(path: Path, text: str) -> None:
    """Write a file that only this user can read; the write is atomic."""
    path.parent.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE), "w") as file:
        file.write(text)
    temporary.rename(path)
