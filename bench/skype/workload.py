"""Draw the workload of the suite skype: skype.txt section 8.1.1."""

from __future__ import annotations

import numpy as np

from bench.datasets import ALPHA_MAX, ALPHA_MIN, Dataset, sample_keywords, text_weight_all
from bench.parts import keyword_rows, object_part
from bench.skype.experiments import SkypeParameters
from engine.contracts import STATIONARY, Rows, handle_of
from index.batches import Floats, InterestBatch, Ints, KeywordLists, ObjectBatch
from safe_region import oracle
from safe_region.scoring.formulas import Similarity
from safe_region.scoring.idf import IdfTable

_SHOWN = 1
"""Time of the comparison of results, at which all messages of the window are alive."""


class SkypeWorkload:
    """Messages, subscriptions and times.

    Messages have the ids 1, 2, ...; the first of them fill the window. Times are milliseconds: a message
    of a window of a number of messages is created at its id, and ends when as many have come after it.

    Parameters
    ----------
    data
        Data set of the messages' positions and keywords.
    parameters
        Size and shape.
    """

    def __init__(self, data: Dataset, parameters: SkypeParameters) -> None:
        self.parameters = parameters
        self.square = data.square()
        self.maxdist_m = data.maxdist_m
        chance = np.random.default_rng(parameters.seed)
        total = parameters.window + parameters.messages
        self.messages: ObjectBatch = data.objects(total, 1, chance)
        self.resampled = max(0, total - len(data))
        """Messages that are mixtures of two of the data set."""
        self.created_ms, self.expiry_ms = self._times(chance, total)
        self.weights = self._weights()
        count = parameters.subscriptions
        self.handles: Ints = handle_of(STATIONARY, 1) + np.arange(count, dtype=np.int64)
        rows = chance.integers(0, parameters.window, count)
        self.x_m: Floats = self.messages.x_m[rows]
        self.y_m: Floats = self.messages.y_m[rows]
        self.alpha = np.clip(chance.random(count), ALPHA_MIN, ALPHA_MAX)
        self.interests = InterestBatch(
            text_weight_all(self.alpha, data.maxdist_m),
            np.full(count, Similarity.TFIDF, dtype=np.int8),
            self._words(chance, keyword_rows(self.messages.keywords, rows)),
        )

    def _times(self, chance: np.random.Generator, total: int) -> tuple[Ints, Ints]:
        if not self.parameters.seconds:
            created = np.arange(1, total + 1, dtype=np.int64)
            return created, created + self.parameters.window
        gap_ms = 1000.0 * self.parameters.seconds / self.parameters.window
        comes_ms = np.cumsum(chance.exponential(gap_ms, total))
        full_ms = comes_ms[self.parameters.window]
        created = np.floor(comes_ms - full_ms).astype(np.int64) + 1000 * self.parameters.seconds
        created = np.maximum(created, 0)
        return created, created + 1000 * self.parameters.seconds

    def _weights(self) -> Floats:
        """Return weights of keywords, from the messages that fill the window."""
        words = self.messages.keywords
        first = words.ids[: words.offsets[self.parameters.window]]
        counts = np.bincount(first, minlength=1 + int(words.ids.max(initial=0)))
        known = {str(word): int(count) for word, count in enumerate(counts.tolist())}
        table = IdfTable.of_counts(self.parameters.window, known)
        return np.array([table.weight(str(word)) for word in range(len(counts))])

    def _words(self, chance: np.random.Generator, of_messages: KeywordLists) -> KeywordLists:
        parameters = self.parameters
        count = parameters.subscriptions
        wanted = chance.integers(1, 6, count) if not parameters.keywords else parameters.keywords
        sizes = np.minimum(wanted, np.diff(of_messages.offsets))
        if not parameters.zipf:
            return sample_keywords(of_messages, sizes, chance)
        ranked = np.argsort(self.weights, kind="stable")  # the most frequent first
        chances = np.cumsum(1.0 / np.arange(1, len(ranked) + 1))
        drawn = np.searchsorted(chances / chances[-1], chance.random(int(sizes.sum())))
        rows = np.split(ranked[np.minimum(drawn, len(ranked) - 1)], np.cumsum(sizes)[:-1])
        return KeywordLists.of([np.unique(row) for row in rows])

    def part(self, start: int, stop: int) -> ObjectBatch:
        """Return consecutive messages."""
        return object_part(self.messages, start, stop)

    def chunks(self) -> list[tuple[int, int, int]]:
        """Return the slices of messages that arrive together after the window is full, and the times."""
        parameters = self.parameters
        first, total = parameters.window, parameters.window + parameters.messages
        if not parameters.seconds:
            starts = range(first, total, parameters.batch)
            stops = [min(start + parameters.batch, total) for start in starts]
            return [(start, stop, stop) for start, stop in zip(starts, stops, strict=True)]
        seconds = np.arange(parameters.seconds, self.created_ms[-1] // 1000 + 1)
        stops = np.searchsorted(self.created_ms, 1000 * (seconds + 1)).tolist()
        starts = np.maximum(first, np.searchsorted(self.created_ms, 1000 * seconds)).tolist()
        times = (1000 * (seconds + 1) - 1).tolist()
        return list(zip(starts, stops, times, strict=True))


class SkypeAudit:
    """Record the reported results of sampled subscriptions, and compare them with the definition."""

    def __init__(self, workload: SkypeWorkload) -> None:
        self.lists = 0
        self.mismatches = 0
        chance = np.random.default_rng([workload.parameters.seed, 7])
        count = workload.parameters.subscriptions
        rows = chance.choice(count, min(workload.parameters.audited, count), replace=False)
        self.rows: Ints = np.sort(rows).astype(np.int64)
        self._workload = workload
        self._reported: dict[int, set[int]] = {
            handle: set() for handle in workload.handles[self.rows].tolist()
        }

    def record(self, changes: Rows) -> None:
        """Record changes."""
        mine = changes[np.isin(changes["handle"], self._workload.handles[self.rows])]
        for handle, object_id, is_drop in zip(
            mine["handle"].tolist(), mine["object_id"].tolist(), mine["is_drop"].tolist(), strict=True
        ):
            reported = self._reported[handle]
            (reported.discard if is_drop else reported.add)(object_id)

    def forget(self, start: int, stop: int) -> None:
        """Record expired messages, which the engine does not report."""
        gone = set(range(start + 1, stop + 1))
        for reported in self._reported.values():
            reported.difference_update(gone)

    def compare(self, held: dict[int, set[int]], start: int, stop: int) -> None:
        """Compare the held and the reported messages of the sample, for a range of live messages."""
        words = self._workload.messages.keywords
        low, high = words.offsets[start], words.offsets[stop]
        owners = np.repeat(np.arange(start, stop), np.diff(words.offsets[start : stop + 1]))
        for row, handle in zip(self.rows.tolist(), self._reported, strict=True):
            wanted = self._words(self._workload.interests.keywords, row)
            having = np.unique(owners[np.isin(words.ids[low:high], list(map(int, wanted)))])
            expected = self._expected(row, wanted, having)
            self.lists += 1
            self.mismatches += not held[handle] == self._reported[handle] == expected

    def _expected(self, row: int, wanted: frozenset[str], having: Ints) -> set[int]:
        workload, messages = self._workload, self._workload.messages
        candidates = [
            oracle.OracleObject(
                one + 1,
                float(messages.x_m[one]),
                float(messages.y_m[one]),
                self._words(messages.keywords, one),
                0,
                _SHOWN + 1,
            )
            for one in having.tolist()
        ]
        query = oracle.OracleSubscription(
            wanted,
            workload.parameters.k,
            float(workload.alpha[row]),
            "tfidf",
            lambda word: float(workload.weights[int(word)]),
        )
        x_m, y_m = float(workload.x_m[row]), float(workload.y_m[row])
        found = oracle.top_k(query, x_m, y_m, workload.maxdist_m, candidates, _SHOWN)
        return {match.object_id for match in found}

    @staticmethod
    def _words(lists: KeywordLists, row: int) -> frozenset[str]:
        return frozenset(map(str, lists.ids[lists.offsets[row] : lists.offsets[row + 1]].tolist()))
