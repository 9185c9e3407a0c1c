from __future__ import annotations

import numpy as np

from index.batches import Floats, InterestBatch, Ints, ObjectBatch, Ranking
from index.buckets.layout import OBJECT_DTYPE
from index.buckets.rankings import Answers, validate
from index.iqf_plus import kernels, list_kernels, search_kernels, tree_kernels
from index.iqf_plus.layout import ENTRY_DTYPE, LIST_DTYPE, NODE_DTYPE, Lists, Objects
from index.tables import SlotTable
from index.tables.growth import longer
from index.tables.id_map_kernels import NO_KEY, copy_all
from index.tables.quad_kernels import NO_NODE
from index.tables.run_kernels import new_runs

_LISTS_MIN = 16
_KEYS_MIN = 32
_NODES_MIN = 64
_RUNS_MIN = 1024


class IqfPlusObjectIndex:
    def __init__(self) -> None:
        self._table = SlotTable(OBJECT_DTYPE)
        meta = np.zeros(list_kernels.META_COUNT, dtype=np.int64)
        meta[list_kernels.LIST_FREE] = list_kernels.NO_LIST
        meta[tree_kernels.NODE_FREE] = NO_NODE
        self._lists = Lists(
            np.zeros(_LISTS_MIN, dtype=LIST_DTYPE),
            np.full(_KEYS_MIN, NO_KEY, dtype=np.int64),
            np.zeros(_KEYS_MIN, dtype=np.int32),
            np.zeros(_NODES_MIN, dtype=NODE_DTYPE),
            new_runs(ENTRY_DTYPE, _RUNS_MIN),
            meta,
            np.zeros(1),
            np.zeros(tree_kernels.STACK_MAX, dtype=np.int32),
        )

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, objects: ObjectBatch) -> None:
        validate(objects)
        slots = self._table.append(objects.ids, objects.keywords, {"x_m": objects.x_m, "y_m": objects.y_m})
        cursor = np.zeros(2, dtype=np.int64)
        while (status := kernels.insert(self._lists, self._objects(), slots, cursor)) != tree_kernels.DONE:
            self._grow(status)

    def remove(self, ids: Ints) -> None:
        slots = self._table.take(ids)
        kernels.remove(self._lists, self._objects(), slots)
        self._table.discard(slots)

    def best(self, interests: InterestBatch, x_m: Floats, y_m: Floats, count: Ints, bound_m: Floats) -> Ranking:
        answers = Answers(np.minimum(count, len(self)), int(self._lists.meta[tree_kernels.NODE_END]) + 4)
        search_kernels.best(
            self._lists,
            self._objects(),
            interests.weight_m,
            interests.similarity,
            interests.keywords.offsets,
            interests.keywords.ids,
            x_m,
            y_m,
            bound_m,
            *answers.columns,
            answers.frontier,
        )
        return answers.ranking()

    def memory_bytes(self) -> int:
        lists = self._lists
        arrays = (lists.lists, lists.keys, lists.values, lists.nodes, *lists.runs, lists.meta, lists.stack)
        return sum(array.nbytes for array in arrays) + self._table.memory_bytes()

    def _objects(self) -> Objects:
        return Objects(self._table.rows, self._table.pool)

    def _grow(self, status: int) -> None:
        lists = self._lists
        if status == tree_kernels.RUNS_FULL:
            records = longer(lists.runs.records, len(lists.runs.records) + 1024)
            self._lists = lists._replace(runs=lists.runs._replace(records=records))
        elif status == tree_kernels.NODES_FULL:
            self._lists = lists._replace(nodes=longer(lists.nodes, len(lists.nodes) + 4))
        elif status == list_kernels.LISTS_FULL:
            self._lists = lists._replace(lists=longer(lists.lists, len(lists.lists) + 1))
        else:
            keys = np.full(2 * len(lists.keys), NO_KEY, dtype=np.int64)
            values = np.zeros(len(keys), dtype=np.int32)
            copy_all(lists.keys, lists.values, keys, values)
            self._lists = lists._replace(keys=keys, values=values)
