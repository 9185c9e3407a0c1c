"""The write-ahead log on disk, read without SQLite: its valid part, and the rest.

SQLite reads a log up to its last valid commit and ignores the rest silently. This is right for a
transaction that was in progress when the power failed, and wrong if a bit of an older one has flipped.

**The format.** A header of 32 bytes (magic, version, page size, checkpoint, two salts, two checksums),
then frames: page number, size of the database after a commit or 0, the two salts, two checksums, and the
page. Checksums are cumulative: each frame's continues that of the frame before. Frames with other salts
are of an earlier round of the log.

**The possible state after a crash** behind the last acknowledged commit. A commit is synced before it is
acknowledged, and before the next transaction is written. The server truncates the log after the last
commit when it opens a log, and after a transaction that it has rolled back. So all frames with the
present salts behind the last acknowledged commit are of *one* transaction. A kill leaves its beginning,
and a power cut any subset of its sectors (the others read as zeros, as the end of the file, or with their
earlier content). Its only frame with a mark of a commit is its last one. The header is synced before the
first frame is written. (SQLite would repeat the last frame of a commit up to the end of a sector where it
does not assume powersafe overwrite: connections are opened so that it does.)

**Damage**, therefore, which no crash leaves:

* a frame behind the last valid commit that has the present salts and a mark of a commit, and is followed
  by another frame with the present salts: nothing was written behind it before it was acknowledged;
* a header that is not valid with anything behind it.

A damaged *last* commit cannot be distinguished from a torn one by the log alone, nor can a log that was
truncated after any commit. The mark of acknowledged commits reveals both (`server.store.mark`).

O(bytes), in numpy: the checksum of a page is a product with constant weights modulo 2^32, 1.2 s a GB.
"""

from __future__ import annotations

import os
import struct
from functools import cache
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

_HEADER = struct.Struct(">8I")
_MAGIC = 0x377F0682
"""The last bit signals that checksums are of big-endian words."""
_VERSION = 3_007_000
_PAGE_BYTES_MIN, _PAGE_BYTES_MAX = 512, 65_536
_CHUNK_BYTES = 4 * 1024 * 1024
_MASK = 0xFFFFFFFF

Words = npt.NDArray[np.uint32]


class LogState(NamedTuple):
    """The content of a log."""

    size_bytes: int
    end_bytes: int
    """The end of the last valid commit; 0 if there is none."""
    commit_count: int
    """Number of valid commits."""
    lost_frame_count: int
    """Frames of the present round of the log behind the last valid commit."""
    lost_commit_count: int
    """Number of marks of commits among these frames."""
    damage: str
    """Damage that no crash leaves; empty if there is none."""


NOTHING = LogState(0, 0, 0, 0, 0, "")


def examine(path: str) -> LogState:
    """Return the content of a log; an absent one is empty."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a name, as in all of the store
            return _examined(file, os.fstat(file.fileno()).st_size)
    except FileNotFoundError:
        return NOTHING


def cut(path: str, end_bytes: int) -> None:
    """Truncate a log after its last commit, durably."""
    try:
        number = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if os.fstat(number).st_size > end_bytes:
            os.ftruncate(number, end_bytes)
            os.fsync(number)
    finally:
        os.close(number)


def _examined(file: IO[bytes], size: int) -> LogState:
    header = file.read(_HEADER.size)
    layout = _layout(header)
    if layout is None:
        is_damaged = size > _HEADER.size
        return LogState(size, 0, 0, 0, 0, "its header does not match its checksum" if is_damaged else "")
    walk = _Walk(header, layout)
    while count := len(chunk := file.read(_CHUNK_BYTES // layout.itemsize * layout.itemsize)):
        if whole := count // layout.itemsize * layout.itemsize:
            walk.add(chunk[:whole])
    end = _HEADER.size + walk.end * layout.itemsize if walk.end else 0
    damage = f"frame {walk.valid + 1:,} does not match its checksum" if walk.is_damaged else ""
    return LogState(size, end, walk.commits, walk.lost_frames, walk.lost_commits, damage)


def _layout(header: bytes) -> np.dtype[Any] | None:
    """Return the layout of a frame; None if the header is not valid."""
    if len(header) < _HEADER.size:
        return None
    magic, version, page_bytes, _, _, _, *sums = _HEADER.unpack(header)
    is_page = _PAGE_BYTES_MIN <= page_bytes <= _PAGE_BYTES_MAX and page_bytes & (page_bytes - 1) == 0
    if magic & ~1 != _MAGIC or version != _VERSION or not is_page:
        return None
    word = ">u4" if magic & 1 else "<u4"
    words = np.frombuffer(header[:24], word).astype(np.uint32)
    if [int(part[0]) for part in _sums(words[None])] != sums:
        return None
    return np.dtype(
        [
            ("numbers", word, 2),  # page number and size, as they enter the checksum
            ("salts", ">u4", 2),
            ("sums", ">u4", 2),
            ("page", word, page_bytes // 4),
        ]
    )


class _Walk:
    """A pass over the frames."""

    def __init__(self, header: bytes, layout: np.dtype[Any]) -> None:
        _, _, _, _, *salts, sum_0, sum_1 = _HEADER.unpack(header)
        self._layout = layout
        self._salts = np.array(salts, dtype=np.uint32)
        self._sums = (sum_0, sum_1)
        self._is_valid = True
        self._count = 0
        self._has_commit_behind = False
        self.valid = 0
        """Number of frames in the chain of checksums."""
        self.end = 0
        """Number of frames up to the last valid commit."""
        self.commits = self.lost_frames = self.lost_commits = 0
        self.is_damaged = False

    def add(self, chunk: bytes) -> None:
        frames = np.frombuffer(chunk, self._layout)
        # Numbers are big-endian in the file, regardless of the byte order of checksums.
        numbers = np.frombuffer(chunk, np.uint8).reshape(len(frames), -1)[:, :8].copy().view(">u4")
        is_present = (frames["salts"] == self._salts).all(axis=1)
        is_commit = is_present & (numbers[:, 1] != 0)
        valid = 0
        if self._is_valid:
            is_linked = self._linked(frames) & is_present & (numbers[:, 0] != 0)
            valid = len(frames) if is_linked.all() else int(is_linked.argmin())
            self._take_valid(is_commit[:valid])
            self._is_valid = valid == len(frames)
        self._take_invalid(is_commit[valid:], is_present[valid:])
        self._count += len(frames)

    def _linked(self, frames: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which frames continue the checksum of the frame before."""
        words = np.concatenate([frames["numbers"], frames["page"]], axis=1, dtype=np.uint32)
        sums = frames["sums"].astype(np.uint32)
        before = np.concatenate([np.array([self._sums], dtype=np.uint32), sums[:-1]])
        self._sums = (int(sums[-1, 0]), int(sums[-1, 1]))
        found = np.stack(_sums(words, before), axis=1)
        return np.asarray((found == sums).all(axis=1))

    def _take_valid(self, is_commit: npt.NDArray[np.bool_]) -> None:
        self.valid += len(is_commit)
        commits = np.flatnonzero(is_commit)
        self.commits += len(commits)
        if len(commits):
            self.end = self._count + int(commits[-1]) + 1
        self.lost_frames = self.valid - self.end

    def _take_invalid(self, is_commit: npt.NDArray[np.bool_], is_present: npt.NDArray[np.bool_]) -> None:
        present = np.flatnonzero(is_present)
        if not len(present):
            return
        commits = np.flatnonzero(is_commit)
        is_followed = len(commits) > 0 and commits[0] < present[-1]
        self.is_damaged |= self._has_commit_behind or is_followed
        self._has_commit_behind |= len(commits) > 0
        self.lost_frames += len(present)
        self.lost_commits += len(commits)


def _sums(words: Words, before: Words | None = None) -> tuple[Words, Words]:
    """Return SQLite's checksum of rows of words, each continued from the one before.

    Two words per step: s0 += a + s1, then s1 += b + s0. This is linear, so it is a product.
    """
    weights, step = _weights(words.shape[1] // 2)
    sums = words @ weights
    if before is not None:
        sums += before @ step
    return sums[:, 0], sums[:, 1]


@cache
def _weights(step_count: int) -> tuple[Words, Words]:
    """Return the weights of each word of a row, and of the sums before, in both sums."""
    weights = np.empty((2 * step_count, 2), dtype=np.uint32)
    (p, q), (r, s) = (1, 0), (0, 1)  # [[1, 1], [1, 2]] to the power of the remaining steps
    for row in range(2 * step_count - 2, -1, -2):
        weights[row] = (p + q) & _MASK, (r + s) & _MASK
        weights[row + 1] = q, s
        (p, q), (r, s) = ((p + q) & _MASK, (p + 2 * q) & _MASK), ((r + s) & _MASK, (r + 2 * s) & _MASK)
    return weights, np.array([[p, r], [q, s]], dtype=np.uint32)
