"""Boolean subscriptions in words, over the matcher's rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engine.boolean.matcher import BooleanMatcher, BooleanSpecs
from engine.contracts import BOOLEAN
from index.batches import Floats, Ints, Ranking
from safe_region.frame import Frame
from server.core.keyword_dictionary import KeywordDictionary
from server.core.specs.checks import checked_keywords, require
from server.limits import Limits
from server.model import Boolean, Slack


class BooleanKind:
    """See `server.core.specs.Kind`.

    Parameters
    ----------
    matcher
        Where subscriptions are.
    dictionary
        Where keywords have their numbers.
    frame
        The service area.
    """

    number = BOOLEAN

    def __init__(self, matcher: BooleanMatcher, dictionary: KeywordDictionary, frame: Frame) -> None:  # noqa: ARG002
        self._matcher = matcher
        self._dictionary = dictionary
        self._specs: dict[int, Boolean] = {}

    @classmethod
    def checked(cls, spec: Boolean, limits: Limits) -> Boolean:
        """Normalise a spec.

        Raises
        ------
        RefusalError
            Naming the field that is out of its limits.
        """
        require(
            0.0 < spec.radius_m <= limits.range_m_max,
            "spec.boolean.circle.radius_m",
            spec.radius_m,
            f"greater than 0, at most {limits.range_m_max}",
        )
        keywords = checked_keywords(
            spec.keywords,
            "spec.boolean.clauses[0].required",
            limits.clause_keywords_max,
            limits.keyword_length_max,
        )
        return replace(spec, keywords=keywords)

    @classmethod
    def needs_exact_positions(cls, spec: Boolean) -> bool:  # noqa: ARG003
        """Any position will do."""
        return False

    @classmethod
    def encoded(cls, spec: Boolean) -> str:
        """Write a spec as JSON: the fields of the message of the same name."""
        clauses = [{"required": spec.keywords}]
        found = {"clauses": clauses, "circle": {"radius_m": spec.radius_m}, "moving": True}
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))

    def needs_exact_position(self, handle: int) -> bool:  # noqa: ARG002
        """Any position will do."""
        return False

    def subscribe(self, handle: int, spec: Boolean) -> None:
        """Make a subscription known, parked."""
        self._subscribe(np.array([handle], dtype=np.int64), [spec])

    def restore(self, handles: Ints, specs: Sequence[Any]) -> None:
        """Make many subscriptions known, parked; specs as `encoded` wrote them, read as JSON."""
        self._subscribe(handles, [_decoded(one) for one in specs])

    def _subscribe(self, handles: Ints, specs: Sequence[Boolean]) -> None:
        self._matcher.subscribe(handles, self._columns(specs))
        self._specs.update(zip(handles.tolist(), specs, strict=True))

    def _columns(self, specs: Sequence[Boolean]) -> BooleanSpecs:
        """Return specs as the matcher takes them. Their keywords are held until given back."""
        keywords = self._dictionary.take_all([spec.keywords for spec in specs])
        return BooleanSpecs(keywords, np.array([spec.radius_m for spec in specs], dtype=np.float64))

    def unsubscribe(self, handle: int) -> None:
        """Forget a subscription."""
        self._matcher.unsubscribe(np.array([handle], dtype=np.int64))
        self._dictionary.give_back(self._specs.pop(handle).keywords)

    def spec(self, handle: int) -> Boolean:
        """Return what a subscription asks for."""
        return self._specs[handle]

    def bound(self, bound_m: float, bound_id: int) -> Slack:
        """Return a slack."""
        return Slack(bound_m, bool(bound_id))

    def search(self, specs: Sequence[Boolean], x_m: Floats, y_m: Floats) -> Ranking:
        """Return what matches at each place, now."""
        ranking = self._matcher.search(self._columns(specs), x_m, y_m)
        for spec in specs:
            self._dictionary.give_back(spec.keywords)
        return ranking


def _decoded(found: Any) -> Boolean:  # noqa: ANN401 - JSON
    (clause,) = found["clauses"]
    return Boolean(tuple(clause["required"]), float(found["circle"]["radius_m"]))
