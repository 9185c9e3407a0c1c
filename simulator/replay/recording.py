"""A simulation for a replay: positions slice by slice, objects in batches by time.

Memory grows with the numbers of devices and of live objects, not with the length of the run. The
rows of a slice are in no order; files of objects are each sorted by (publish_ms, object_key).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from safe_region.scoring.idf import IdfTable
from simulator import schemas
from simulator.errors import SimulationError
from simulator.stages import row_count
from simulator.tables import SORT_KEYS, check_table, read_table, slice_name
from simulator.workload.rows import Fix, ObjectRow, SubscriptionRow, subscription_rows
from simulator.world import read_world

_BATCH_ROWS = 8_192
"""Objects that are read at once, of each file."""

_REPLAYED = ("trajectories", "objects", "subscriptions", "idf")


class Share(NamedTuple):
    """One of several equal shares of the devices, by a hash of their ids."""

    part: int = 0
    parts: int = 1

    def has(self, device_id: str) -> bool:
        """Whether a device is in this share."""
        return self.parts == 1 or crc32(device_id.encode()) % self.parts == self.part


class Tick(NamedTuple):
    """The positions of the devices that have one at a tick, by id."""

    number: int
    fixes: list[Fix]


class Recording:
    """The tables of a simulation, of which a share of the devices is replayed.

    Parameters
    ----------
    path
        The folder that `simulate` wrote.
    share
        The share of the devices; objects are always complete.

    Raises
    ------
    SimulationError
        If the folder is no simulation, or a table is missing or has other columns; later, if one cannot
        be read or is not in its order.
    """

    def __init__(self, path: Path, share: Share | None = None) -> None:
        if not path.is_dir():
            raise SimulationError(f"{path} is not a folder")
        self.path = path
        self.share = share or Share()
        self.world = read_world(path)
        for name in _REPLAYED:
            check_table(path, name)

    def subscriptions(self) -> list[SubscriptionRow]:
        """Return the subscriptions of the devices of the share."""
        table = read_table(self.path, "subscriptions")
        return subscription_rows(table.filter(_is_mine(table["device_id"], self.share)))

    def is_weighed(self) -> bool:
        """Whether a device, of any share, compares texts by weights of keywords."""
        similarities = read_table(self.path, "subscriptions")["similarity"]
        return bool(pc.any(pc.equal(similarities, "tfidf")).as_py())

    def idf_table(self) -> IdfTable:
        """Return the weights of keywords, by the number of objects that have each."""
        table = read_table(self.path, "idf")
        words, counts = (table.column(name).to_pylist() for name in ("keyword", "objects"))
        weighed = dict(zip(words, counts, strict=True))
        return IdfTable.of_counts(row_count(self.path / "objects"), weighed)

    def ticks(self) -> Iterator[Tick]:
        """Yield the ticks that have positions, in order. One slice is in memory at a time."""
        for number in range(self.world.slice_count):
            table = self._slice(number)
            ticks = table["tick"].to_numpy()
            columns = [table.column(name) for name in Fix._fields]
            begins = np.flatnonzero(np.diff(ticks, prepend=-1))
            for begin, end in zip(begins, [*begins[1:], len(ticks)], strict=True):
                found = (column.slice(begin, end - begin).to_pylist() for column in columns)
                yield Tick(int(ticks[begin]), [Fix(*row) for row in zip(*found, strict=True)])

    def objects(self) -> Iterator[ObjectRow]:
        """Yield the published objects, in the order of (publish_ms, object_key)."""
        latest_ms = -1
        files = (self._object_rows(path) for path in self._object_files())
        for row in heapq.merge(*files, key=lambda one: (one.publish_ms, one.object_key)):
            if row.publish_ms < latest_ms:
                raise SimulationError(
                    f"the table objects in {self.path} is not sorted: {row.object_key} is published at "
                    f"{row.publish_ms} ms, after one at {latest_ms} ms"
                )
            latest_ms = row.publish_ms
            yield row

    def _slice(self, number: int) -> pa.Table:
        """Read a slice; of each file only the rows of the share."""
        names = ["tick", *Fix._fields]
        folder = self.path / "trajectories" / slice_name(number)
        parts = [schemas.arrow_schema(schemas.TRAJECTORIES).empty_table().select(names)]
        for path in sorted(folder.glob("*.parquet")):
            with _readable(path), pq.ParquetFile(path) as file:
                table = file.read(columns=names)
            parts.append(table.filter(_is_mine(table["device_id"], self.share)).cast(parts[0].schema))
        order = [(key, "ascending") for key in SORT_KEYS["trajectories"]]
        return pa.concat_tables(parts).sort_by(order).combine_chunks()

    def _object_files(self) -> list[Path]:
        return sorted((self.path / "objects").glob("*.parquet"))

    def _object_rows(self, path: Path) -> Iterator[ObjectRow]:
        names = list(ObjectRow._fields)
        with _readable(path), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=names):
                columns = (batch.column(name).to_pylist() for name in names)
                yield from map(ObjectRow._make, zip(*columns, strict=True))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise SimulationError(f"{path} cannot be read: {error}") from None


def _is_mine(device_ids: pa.ChunkedArray, share: Share) -> pa.ChunkedArray | pa.Array:
    """Return the mask of rows of a share. O(rows), a hash for each device."""
    encoded = device_ids.combine_chunks().dictionary_encode()
    is_mine = pa.array([share.has(one) for one in encoded.dictionary.to_pylist()], pa.bool_())
    return pc.take(is_mine, encoded.indices)
