"""Kinds of damage of a store's files. Each takes what files there are and damages some of them.

They know the format: pages of the database and what is in them, the header, frames of the log, the
mark; and the files themselves, which may be absent, empty, longer, of another moment, or of another
store.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from tests.chaos.damaged_store import Evidence, Files

PAGE = 4096
FRAME_BYTES = 24 + PAGE
_HEADER_BYTES = 32
_LEAF, _INNER, _KEYED_LEAF, _KEYED_INNER = 13, 5, 10, 2

Damage = Callable[[Evidence, random.Random], Files]


def _either(evidence: Evidence, rng: random.Random) -> Files:
    """Return files after a kill or after a stop."""
    return dict(rng.choice((evidence.killed, evidence.closed)))


def _edited(data: bytes, place: int, piece: bytes) -> bytes:
    return data[:place] + piece + data[place + len(piece) :]


def _flipped(data: bytes, place: int, rng: random.Random) -> bytes:
    return _edited(data, place, bytes([data[place] ^ (1 << rng.randrange(8))]))


def _pages(data: bytes, *kinds: int) -> list[int]:
    """Return where pages of some kinds begin, not the first; all without a kind."""
    places = range(PAGE, len(data), PAGE)
    return [place for place in places if not kinds or data[place] in kinds]


# -- the database --------------------------------------------------------------------------------


def bit_of_database(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    return files | {"": _flipped(files[""], rng.randrange(len(files[""])), rng)}


def bit_of_a_row(evidence: Evidence, rng: random.Random) -> Files:
    files = dict(evidence.closed)
    leaf = rng.choice(_pages(files[""], _LEAF, _KEYED_LEAF))
    content = struct.unpack_from(">H", files[""], leaf + 5)[0]
    return files | {"": _flipped(files[""], rng.randrange(leaf + content, leaf + PAGE), rng)}


def bit_of_database_header(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    return files | {"": _flipped(files[""], rng.randrange(100), rng)}


def bit_of_inner_page(evidence: Evidence, rng: random.Random) -> Files:
    files = dict(evidence.closed)
    inner = rng.choice(_pages(files[""], _INNER, _KEYED_INNER))
    used = [place for place in range(inner, inner + PAGE) if files[""][place]]
    return files | {"": _flipped(files[""], rng.choice(used), rng)}


def bytes_of_database(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    for _ in range(rng.randrange(1, 9)):
        piece = rng.randbytes(rng.randrange(1, 65))
        place = rng.randrange(len(files[""]) - len(piece))
        files[""] = _edited(files[""], place, piece)
    return files


def page_of_zeros_or_garbage(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    place = rng.randrange(len(files[""]) // PAGE) * PAGE
    return files | {"": _edited(files[""], place, rng.choice((bytes(PAGE), rng.randbytes(PAGE))))}


def pages_exchanged(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    alike = rng.random() < 0.7
    kinds = (rng.choice((_LEAF, _KEYED_LEAF)),) if alike else ()
    one, other = rng.sample(_pages(files[""], *kinds), 2)
    data = files[""]
    pieces = data[one : one + PAGE], data[other : other + PAGE]
    return files | {"": _edited(_edited(data, one, pieces[1]), other, pieces[0])}


def page_in_place_of_another(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    one, other = rng.sample(_pages(files[""]), 2)
    return files | {"": _edited(files[""], one, files[""][other : other + PAGE])}


def page_shifted(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    place = rng.choice(_pages(files[""]))
    by = rng.choice((1, 4, 512, 2048))
    page = files[""][place : place + PAGE]
    return files | {"": _edited(files[""], place, page[by:] + page[:by])}


def page_of_the_past(evidence: Evidence, rng: random.Random) -> Files:
    """Return files of which a page was never written again: a lost write."""
    files = _either(evidence, rng)
    past = rng.choice((evidence.early, evidence.middle))[""]
    changed = [
        place
        for place in range(0, min(len(past), len(files[""])), PAGE)
        if past[place : place + PAGE] != files[""][place : place + PAGE]
    ]
    for place in rng.sample(changed, min(len(changed), rng.randrange(1, 4))):
        files[""] = _edited(files[""], place, past[place : place + PAGE])
    return files


def page_half_of_the_past(evidence: Evidence, rng: random.Random) -> Files:
    """Return files of which some sectors of a page were not written: a torn write."""
    files = dict(evidence.closed)
    past = evidence.middle[""]
    sectors = [
        place
        for place in range(0, min(len(past), len(files[""])), 512)
        if past[place : place + 512] != files[""][place : place + 512]
    ]
    for place in rng.sample(sectors, rng.randrange(1, 6)):
        files[""] = _edited(files[""], place, past[place : place + 512])
    return files


def database_cut_short(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    size = rng.choice(
        (
            len(files[""]) - PAGE,
            rng.randrange(len(files[""])),
            rng.randrange(len(files[""]) // PAGE) * PAGE,
        )
    )
    return files | {"": files[""][:size]}


def database_made_longer(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    count = rng.choice((1, 512, PAGE, 3 * PAGE + 7))
    return files | {"": files[""] + rng.choice((bytes(count), rng.randbytes(count)))}


# -- the log -------------------------------------------------------------------------------------


def frames_of(log: bytes) -> list[int]:
    """Return where frames begin."""
    return [*range(_HEADER_BYTES, len(log) - FRAME_BYTES + 1, FRAME_BYTES)]


def commits_of(log: bytes) -> list[int]:
    """Return where commits end."""
    return [
        place + FRAME_BYTES for place in frames_of(log) if struct.unpack_from(">I", log, place + 4)[0]
    ]


def bit_of_log(evidence: Evidence, rng: random.Random) -> Files:
    files = dict(evidence.killed)
    return files | {"-wal": _flipped(files["-wal"], rng.randrange(len(files["-wal"])), rng)}


def bit_of_last_commit(evidence: Evidence, rng: random.Random) -> Files:
    files = dict(evidence.killed)
    start, end = commits_of(files["-wal"])[-2:]
    return files | {"-wal": _flipped(files["-wal"], rng.randrange(start, end), rng)}


def bit_of_frame_header(evidence: Evidence, rng: random.Random) -> Files:
    files = dict(evidence.killed)
    place = rng.choice((0, *frames_of(files["-wal"])))
    return files | {"-wal": _flipped(files["-wal"], place + rng.randrange(24), rng)}


def log_cut_short(evidence: Evidence, rng: random.Random) -> Files:
    files = dict(evidence.killed)
    log = files["-wal"]
    size = rng.choice(
        (
            rng.choice(commits_of(log)[:-1]),
            rng.choice(frames_of(log)),
            rng.choice(frames_of(log)) + 24,
            rng.randrange(len(log)),
            _HEADER_BYTES,
        )
    )
    return files | {"-wal": log[:size]}


def log_gone(evidence: Evidence, rng: random.Random) -> Files:
    files = dict(evidence.killed)
    del files["-wal"]
    return files | ({"-wal": b""} if rng.random() < 0.5 else {})


def frames_misplaced(evidence: Evidence, rng: random.Random) -> Files:
    """Return files with a frame, or several sectors, in the place of others."""
    files = dict(evidence.killed)
    log = files["-wal"]
    one, other = rng.sample(frames_of(log), 2)
    size = rng.choice((FRAME_BYTES, FRAME_BYTES, 512, 24))
    pieces = log[one : one + size], log[other : other + size]
    edited = _edited(log, one, pieces[1])
    return files | {"-wal": _edited(edited, other, pieces[0]) if rng.random() < 0.5 else edited}


def sectors_of_log_lost(evidence: Evidence, rng: random.Random) -> Files:
    files = dict(evidence.killed)
    size = rng.choice((512, PAGE))
    place = rng.randrange(len(files["-wal"]) // size) * size
    piece = rng.choice((bytes(size), rng.randbytes(size)))
    return files | {"-wal": _edited(files["-wal"], place, piece)}


def log_made_longer(evidence: Evidence, rng: random.Random) -> Files:
    files = dict(evidence.killed)
    log = files["-wal"]
    start = rng.choice(frames_of(log))
    more = rng.choice((bytes(9_000), rng.randbytes(9_000), log[start:], log[start : start + FRAME_BYTES]))
    return files | {"-wal": log + more}


# -- files ---------------------------------------------------------------------------------------


def database_gone(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    if rng.random() < 0.3:
        files.pop("-mark")
        files["-wal"] = evidence.killed["-wal"]
    if rng.random() < 0.2 and "-wal" in files:
        files["-journal"] = files.pop("-wal")
    del files[""]
    return files | ({"": b""} if rng.random() < 0.5 else {})


def file_of_another_moment(evidence: Evidence, rng: random.Random) -> Files:
    """Return files of two moments: an older database, an older log, or a backup beside the log in use."""
    files = _either(evidence, rng)
    past = rng.choice((evidence.early, evidence.middle))
    if rng.random() < 0.5:
        return files | {"": past[""]}
    return files | {"-wal": evidence.middle["-wal"]}


def older_database_and_log(evidence: Evidence, rng: random.Random) -> Files:
    """Return a database and log of an older moment beside the mark in use."""
    past = rng.choice((evidence.early, evidence.middle))
    return {**past, "-mark": evidence.killed["-mark"]}


def file_of_another_store(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    names = rng.choice((("",), ("-wal",), ("", "-wal"), ("-mark",)))
    return files | {name: evidence.other[name] for name in names}


def mark_damaged(evidence: Evidence, rng: random.Random) -> Files:
    files = _either(evidence, rng)
    mark = files.pop("-mark")
    contents = (
        None,
        b"",
        bytes(len(mark)),
        rng.randbytes(len(mark)),
        _flipped(mark, rng.randrange(len(mark)), rng),
        mark[: rng.randrange(len(mark))],
        mark + b"more",
        rng.choice(evidence.earlier_marks),
    )
    content = rng.choice(contents)
    return files if content is None else files | {"-mark": content}


def files_without_data_damaged(evidence: Evidence, rng: random.Random) -> Files:
    """Return files with garbage in the index of the log and in the lock, which have nothing to keep."""
    files = _either(evidence, rng)
    size = rng.choice((0, 100, 32_768))
    return files | {"-shm": rng.choice((bytes(size), rng.randbytes(size))), ".lock": b""}


KINDS: dict[str, Damage] = {
    "a bit of the database": bit_of_database,
    "a bit of a row": bit_of_a_row,
    "a bit of the database's header": bit_of_database_header,
    "a bit of an inner page": bit_of_inner_page,
    "one to eight pieces of the database": bytes_of_database,
    "a page of zeros or garbage": page_of_zeros_or_garbage,
    "two pages exchanged": pages_exchanged,
    "a page in the place of another": page_in_place_of_another,
    "a page shifted by some bytes": page_shifted,
    "one to three pages of the past (lost writes)": page_of_the_past,
    "sectors of the past (torn pages)": page_half_of_the_past,
    "the database cut short": database_cut_short,
    "the database made longer": database_made_longer,
    "a bit of the log": bit_of_log,
    "a bit of its last commit": bit_of_last_commit,
    "a bit of a header in the log": bit_of_frame_header,
    "the log cut short": log_cut_short,
    "the log absent or empty": log_gone,
    "frames or sectors of the log misplaced": frames_misplaced,
    "sectors of the log of zeros or garbage": sectors_of_log_lost,
    "the log made longer": log_made_longer,
    "the database absent or empty": database_gone,
    "database or log of another moment": file_of_another_moment,
    "database and log older than the mark": older_database_and_log,
    "files of another store": file_of_another_store,
    "the mark damaged, older, or absent": mark_damaged,
    "the index of the log damaged": files_without_data_damaged,
}


def last_commits_after_a_power_cut(evidence: Evidence, rng: random.Random) -> Files:
    """Return files whose mark lacks some commits, and a log that is damaged in the last."""
    files = dict(evidence.killed)
    log = files["-wal"]
    lacking = rng.randrange(1, len(evidence.earlier_marks) + 1)
    files["-mark"] = evidence.earlier_marks[-lacking]
    ends = commits_of(log)
    if rng.random() < 0.5:
        return files | {"-wal": _flipped(log, rng.randrange(ends[-2], ends[-1]), rng)}
    return files | {"-wal": log[: rng.randrange(ends[-1 - lacking], ends[-1])]}


ACCEPTED: dict[str, Damage] = {
    "after a power cut: last commits that the mark lacks": last_commits_after_a_power_cut
}
"""What looks like a transaction that was in progress: an earlier moment is served."""
