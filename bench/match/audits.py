"""Compare a subscription index with the definition, in plain Python, without a kernel."""

from __future__ import annotations

import math

from bench.datasets import keyword_sets
from bench.match.workload import MatchWorkload
from bench.matching import wrong_rows
from index.batches import Matches
from safe_region.scoring.formulas import text_distance


class MatchAudit:
    """The true matches of some new objects.

    Subscriptions that share no keyword with an object are skipped, so that a sample is affordable with a
    million subscriptions.

    Parameters
    ----------
    workload
        The measured workload.
    count
        Number of the first new objects that are compared.
    """

    def __init__(self, workload: MatchWorkload, count: int) -> None:
        self._having: dict[int, list[int]] = {}
        self._words = [row.tolist() for row in keyword_sets(workload.interests.keywords)]
        for row, words in enumerate(self._words):
            for word in words:
                self._having.setdefault(word, []).append(row)
        self.expected = [self._matches(workload, i) for i in range(min(count, len(workload.arrivals)))]

    def _matches(self, workload: MatchWorkload, number: int) -> list[int]:
        """Return the ids of the subscriptions that a new object affects, in increasing order."""
        objects, reaches, interests = workload.arrivals, workload.reaches, workload.interests
        object_id = int(objects.ids[number])
        here_x, here_y = float(objects.x_m[number]), float(objects.y_m[number])
        wanted = set(objects.keywords.row(number).tolist())
        found = []
        for row in sorted({row for word in wanted for row in self._having.get(word, ())}):
            common = len(wanted.intersection(self._words[row]))
            distance = text_distance(
                int(interests.similarity[row]), common, len(self._words[row]), len(wanted)
            )
            dx, dy = float(reaches.x_m[row]) - here_x, float(reaches.y_m[row]) - here_y
            length = math.sqrt(dx * dx + dy * dy) + float(interests.weight_m[row]) * distance
            if (length, object_id) < (float(reaches.reach_m[row]), int(reaches.reach_id[row])):
                found.append(int(reaches.ids[row]))
        return found

    def mismatches(self, found: Matches, subscriptions: int) -> int:
        """Count the objects whose true matches among the first subscriptions differ from those found."""
        known = [[one for one in ids if one <= subscriptions] for ids in self.expected]
        return wrong_rows(found, known)
