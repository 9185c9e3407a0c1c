"""PostgreSQL as a clause index: a GiST index on boxes, keywords as text[].

A private cluster is started at its first use, on a socket in its own folder, and stopped when the process
ends. It writes to memory as far as possible (no fsync), since the other peers do not write at all.
Operations are SQL statements; a batch of objects is one join.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.errors import BenchError
from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.tables.clauses import validate_boxes, validate_clauses

if TYPE_CHECKING:
    import psycopg

_NOBODY = "nobody"
_FOLDERS = ("/usr/local/bin", "/usr/local/pgsql/bin", "/opt/homebrew/bin")
_NUMBERS = count(1)


def missing() -> str | None:
    """Return the reason that PostgreSQL is not available; None if it is."""
    try:
        import psycopg  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        return f"psycopg is not installed ({error})"
    if _program("initdb") is None or _program("pg_ctl") is None:
        return "PostgreSQL is not installed (initdb and pg_ctl are not on the path)"
    return None


def _program(name: str) -> str | None:
    """Return the path of a program of PostgreSQL, which Debian does not put on the search path."""
    debian = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join([*_FOLDERS, *debian]))


class PostgresIndex:
    """See `index.contracts.ClauseIndex`. Each index has its own table in the cluster.

    Raises
    ------
    BenchError
        If PostgreSQL is not installed, or does not start.
    """

    def __init__(self) -> None:
        self._connection = _connection()
        self._table = f"clauses_{next(_NUMBERS)}"
        self._count = 0
        self.candidate_count = 0
        """Unknown, always 0."""
        self._execute("create table {} (id bigint primary key, area box, words text[])")
        self._execute("create index on {} using gist (area)")

    def __len__(self) -> int:
        return self._count

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses."""
        validate_clauses(ids, boxes, required)
        self._require(ids, are_there=False)
        rows = zip(ids.tolist(), _boxes(boxes), _words(required), strict=True)
        with self._connection.cursor() as cursor, cursor.copy(self._sql("copy {} from stdin")) as copy:
            for row in rows:
                copy.write_row(row)
        self._count += len(ids)
        self._execute("analyze {}")

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Replace the boxes of clauses."""
        validate_boxes(ids, boxes)
        self._require(ids, are_there=True)
        with self._connection.cursor() as cursor:
            cursor.executemany(
                self._sql("update {} set area = %s where id = %s"),
                list(zip(_boxes(boxes), ids.tolist(), strict=True)),
            )

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        self._require(ids, are_there=True)
        self._execute("delete from {} where id = any(%s)", (ids.tolist(),))
        self._count -= len(ids)

    def match(self, objects: ObjectBatch) -> Matches:
        """Query for one object, or join with many."""
        if len(objects) == 1:
            (box,), (words,) = _boxes(objects.extents()), _words(objects.keywords)
            sql = "select 0, id from {} where area && %s::box and words <@ %s::text[]"
            found = self._rows(sql, (box, words))
        else:
            found = self._joined(objects)
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        offsets = np.searchsorted(pairs[:, 0], np.arange(len(objects) + 1))
        return Matches(offsets, np.ascontiguousarray(pairs[:, 1]))

    def _joined(self, objects: ObjectBatch) -> list[tuple[int, ...]]:
        self._execute("create temp table objects (place bigint, area box, words text[])")
        rows = zip(range(len(objects)), _boxes(objects.extents()), _words(objects.keywords), strict=True)
        with (
            self._connection.cursor() as cursor,
            cursor.copy("copy objects from stdin") as copy,
        ):
            for row in rows:
                copy.write_row(row)
        found = self._rows(
            "select place, id from objects join {} as clauses"
            " on clauses.area && objects.area and clauses.words <@ objects.words"
        )
        self._execute("drop table objects")
        return found

    def _require(self, ids: Ints, *, are_there: bool) -> None:
        """Require that ids are in the index, or are not, and that none occurs twice."""
        known = {row[0] for row in self._rows("select id from {} where id = any(%s)", (ids.tolist(),))}
        seen: set[int] = set()
        for one in ids.tolist():
            if (one in known) != are_there or one in seen:
                raise KeyError(
                    f"id {one} is {'not' if are_there else 'already'} in the index, or is in "
                    "the batch twice"
                )
            seen.add(one)

    def _sql(self, text: str) -> Any:  # noqa: ANN401 - psycopg types its statements as literals
        return text.format(self._table)

    def _execute(self, sql: str, values: tuple[object, ...] = ()) -> None:
        self._connection.execute(self._sql(sql), values or None)

    def _rows(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[int, ...]]:
        return self._connection.execute(self._sql(sql), values or None).fetchall()

    def memory_bytes(self) -> int:
        """Return the size of the table and its indexes."""
        ((size,),) = self._rows("select pg_total_relation_size('{}')")
        return int(size)

    def check(self) -> None:
        """Do nothing: PostgreSQL verifies its own tables."""


def _boxes(boxes: Boxes) -> Iterator[str]:
    """Yield boxes as PostgreSQL reads them."""
    columns = (one.tolist() for one in (boxes.x1_m, boxes.y1_m, boxes.x2_m, boxes.y2_m))
    return (f"({x1!r},{y1!r}),({x2!r},{y2!r})" for x1, y1, x2, y2 in zip(*columns, strict=True))


def _words(lists: KeywordLists) -> Iterator[list[str]]:
    """Yield keywords as texts."""
    words = list(map(str, lists.ids.tolist()))
    ends = lists.offsets.tolist()
    return (words[start:end] for start, end in pairwise(ends))


@cache
def _connection() -> psycopg.Connection[Any]:
    """Start a cluster, once in a process; connect to it."""
    reason = missing()
    if reason is not None:
        raise BenchError(reason)
    import psycopg  # noqa: PLC0415 - an extra

    folder = Path(tempfile.mkdtemp(prefix="nearcast-pg-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # PostgreSQL does not run as root.
    user = _NOBODY if hasattr(os, "geteuid") and os.geteuid() == 0 else None
    if user is not None:
        folder.chmod(0o777)
    data = str(folder / "data")
    options = f"-c listen_addresses='' -k {folder} -c fsync=off -c synchronous_commit=off -c jit=off"
    _run(user, folder, "initdb", "-D", data, "-A", "trust", "-U", "bench", "--no-sync", "-E", "UTF8")
    _run(user, folder, "pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    atexit.register(_run, user, folder, "pg_ctl", "-D", data, "-m", "immediate", "stop")
    found = psycopg.connect(host=str(folder), user="bench", dbname="postgres", autocommit=True)
    atexit.register(found.close)
    found.execute("set work_mem = '256MB'")
    return found


def _run(user: str | None, folder: Path, name: str, *arguments: str) -> None:
    """Run a program of PostgreSQL."""
    program = _program(name)
    if program is None:
        raise BenchError(f"{name} is not installed")
    done = subprocess.run(  # noqa: S603 - of PostgreSQL
        [program, *arguments], user=user, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BenchError(f"{name} failed: {(done.stderr or done.stdout).strip()}")
