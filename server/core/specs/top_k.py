"""Top-k subscriptions with keywords as text, over the matcher's rows.

This module holds two numbers per subscription, its alpha and its scale; the matcher holds keywords, k,
similarity and region. A `TopK` is created on demand. A look-up costs O(keywords), subscribe O(1).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from engine.contracts import STATIONARY, TOP_K
from engine.stationary.matcher import StationaryMatcher, StationarySpecs
from engine.top_k.matcher import TopKMatcher, TopKSpecs
from engine.windows import Lasts
from index.batches import Floats, InterestBatch, Ints, KeywordLists, Ranking
from index.tables.growth import longer
from safe_region.earth.frame import Frame
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity, distance_scale, text_weight
from server.core.keyword_dictionary import KeywordDictionary
from server.core.specs.checks import checked_keywords, require
from server.core.specs.windows import (
    check_window,
    lasts_of,
    require_known,
    window_of,
)
from server.limits import Limits
from server.model import Reach, TopK, Window

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class _Measures(NamedTuple):
    """The parameters by which subscriptions weigh distance against text, a row each."""

    alpha: Sequence[float]
    own_scale_m: Sequence[float]
    """0 for subscriptions without their own scale."""

    @classmethod
    def of(cls, specs: Sequence[TopK]) -> _Measures:
        return cls([spec.alpha for spec in specs], [spec.distance_scale_m for spec in specs])

    def scales_m(self, frame: Frame) -> list[float]:
        return [distance_scale(one, frame.maxdist_m) for one in self.own_scale_m]


class TopKKind:
    """Top-k subscriptions; see `server.core.specs.Kind`.

    Parameters
    ----------
    matcher
        The matcher that holds the subscriptions.
    dictionary
        The numbers of keywords.
    frame
        The service area, whose diagonal is the scale of subscriptions without their own.
    """

    number = TOP_K

    def __init__(
        self, matcher: TopKMatcher | StationaryMatcher, dictionary: KeywordDictionary, frame: Frame
    ) -> None:
        self._matcher: Any = matcher
        self._table = matcher.subscriptions
        self._windows = matcher.windows
        self._weights = matcher.weights
        self._dictionary = dictionary
        self._frame = frame
        self._alpha: Floats = np.zeros(16)
        self._own_scale_m: Floats = np.zeros(16)
        """By slot, as `_alpha` is; 0 for none."""

    @classmethod
    def checked(cls, spec: TopK, limits: Limits, frame: Frame) -> TopK:  # noqa: ARG003
        """Return a normalised spec.

        Raises
        ------
        RefusalError
            Naming the field that is out of its limits.
        """
        field = "spec.top_k"
        require(1 <= spec.k <= limits.k_max, f"{field}.k", spec.k, f"1 to {limits.k_max}")
        require(
            limits.alpha_min <= spec.alpha <= limits.alpha_max,
            f"{field}.alpha",
            spec.alpha,
            f"{limits.alpha_min} to {limits.alpha_max}",
        )
        scale_m, most_m = spec.distance_scale_m, limits.distance_scale_m_max
        require(
            scale_m == 0.0 or 1.0 <= scale_m <= most_m,
            f"{field}.distance_scale_m",
            scale_m,
            f"1 to {most_m:.0f}, or absent",
        )
        keywords = checked_keywords(
            spec.keywords,
            f"{field}.keywords",
            limits.subscription_keywords_max,
            limits.keyword_length_max,
        )
        check_window(spec.window, spec.region, limits)
        if spec.similarity is Similarity.TFIDF:
            require_known(spec.region, "since the similarity is TFIDF")
        return replace(spec, keywords=keywords, distance_scale_m=scale_m or 0.0)

    @classmethod
    def needs_exact_positions(cls, spec: TopK) -> bool:
        """Return whether the server needs the exact position of the device: in all modes but ANCHORED."""
        return spec.region.needs_exact_position

    @classmethod
    def renamed(cls, spec: TopK, name: Callable[[str], str]) -> TopK:
        """Return a spec with another name for each keyword; their order stays."""
        return replace(spec, keywords=tuple(map(name, spec.keywords)))

    @classmethod
    def encoded(cls, spec: TopK) -> str:
        """Return a spec as JSON: [keywords, k, alpha, similarity, region, window, scale].

        A missing window is [0, 0], and a missing scale is 0.
        """
        numbers = spec.k, spec.alpha, int(spec.similarity), int(spec.region)
        window = spec.window.duration_ms, spec.window.count
        return _encode([spec.keywords, *numbers, window, spec.distance_scale_m])

    def needs_exact_position(self, handle: int) -> bool:
        """Return whether the server needs the exact position of the subscription's device. O(1)."""
        return self._region_of(self._table.rows[self._slot(handle)]).needs_exact_position

    def subscribe(self, handle: int, spec: TopK) -> None:
        """Add a subscription, parked."""
        keywords = KeywordLists.of([self._dictionary.take(spec.keywords)])
        lasts = lasts_of([spec.window])
        self._subscribe(
            np.array([handle], dtype=np.int64), _Measures.of([spec]), keywords, _columns([spec]), lasts
        )

    def restore(self, handles: Ints, specs: Sequence[Any]) -> None:
        """Add many subscriptions, parked; the specs are the parsed JSON that `encoded` wrote."""
        words, k, alpha, similarity, region, windows, scales = zip(*specs, strict=True)
        numbers = tuple(np.array(column, dtype=np.int64) for column in (k, similarity, region))
        measures = _Measures(alpha, scales)
        lasts = lasts_of([Window(*one) for one in windows])
        self._subscribe(handles, measures, self._dictionary.take_all(words), numbers, lasts)

    def _subscribe(
        self,
        handles: Ints,
        measures: _Measures,
        keywords: KeywordLists,
        numbers: tuple[Ints, ...],
        lasts: Lasts,
    ) -> None:
        self._matcher.subscribe(handles, self._specs(measures, numbers, keywords, lasts))
        self._alpha = longer(self._alpha, self._table.end)
        self._own_scale_m = longer(self._own_scale_m, self._table.end)
        slots = self._table.slots(handles)
        self._alpha[slots], self._own_scale_m[slots] = measures

    def _specs(
        self, measures: _Measures, numbers: tuple[Ints, ...], keywords: KeywordLists, lasts: Lasts
    ) -> Any:  # noqa: ANN401
        """Return subscriptions as columns for the matcher."""
        k, similarity, region = numbers
        scales = measures.scales_m(self._frame)
        weights = [text_weight(*one) for one in zip(measures.alpha, scales, strict=True)]
        interests = InterestBatch(np.array(weights), similarity.astype(np.int8), keywords)
        return self._matcher_specs(interests, k, region, lasts, np.array(scales))

    def _matcher_specs(
        self,
        interests: InterestBatch,
        k: Ints,
        region: Ints,
        lasts: Lasts,
        scale_m: Floats,  # noqa: ARG002
    ) -> Any:  # noqa: ANN401
        return TopKSpecs(interests, k, region, lasts=lasts)

    def _region_of(self, row: Any) -> RegionMode:  # noqa: ANN401 - a row of the matcher's
        return RegionMode(int(row["region"]))

    def unsubscribe(self, handle: int) -> None:
        """Remove a subscription."""
        keywords = self._keywords(handle)
        self._matcher.unsubscribe(np.array([handle], dtype=np.int64))
        self._dictionary.give_back(keywords)

    def spec(self, handle: int) -> TopK:
        """Return the spec of a subscription."""
        slot = self._slot(handle)
        row = self._table.rows[slot]
        return TopK(
            self._dictionary.row(self._table.keywords(slot)),
            int(row["k"]),
            float(self._alpha[slot]),
            Similarity(int(row["similarity"])),
            self._region_of(row),
            window_of(self._windows, int(row["window"])),
            float(self._own_scale_m[slot]),
        )

    def _slot(self, handle: int) -> int:
        return int(self._table.slots(np.array([handle], dtype=np.int64))[0])

    def _keywords(self, handle: int) -> tuple[str, ...]:
        lists = self._matcher.keyword_lists(np.array([handle], dtype=np.int64))
        (found,) = self._dictionary.words(lists)
        return found

    def bound(self, handle: int, bound_m: float, bound_id: int) -> Reach:
        """Return a reach."""
        if not any(self._weights.generations):
            return Reach(bound_m, bound_id)
        return Reach(bound_m, bound_id, self._matcher.generation(handle))

    def search(self, specs: Sequence[TopK], x_m: Floats, y_m: Floats) -> Ranking:
        """Return the k best at each place, now."""
        words = [spec.keywords for spec in specs]
        keywords = KeywordLists.of([self._dictionary.take(row) for row in words])
        lasts = lasts_of([spec.window for spec in specs])
        query = self._specs(_Measures.of(specs), _columns(specs), keywords, lasts)
        ranking: Ranking = self._matcher.search(query, x_m, y_m)
        for row in words:
            self._dictionary.give_back(row)
        return ranking


class StationaryKind(TopKKind):
    """Top-k subscriptions of the mode STATIONARY, over their own matcher."""

    number = STATIONARY

    def _matcher_specs(
        self,
        interests: InterestBatch,
        k: Ints,
        region: Ints,  # noqa: ARG002
        lasts: Lasts,
        scale_m: Floats,
    ) -> StationarySpecs:
        return StationarySpecs(interests, k, lasts, scale_m)

    def _region_of(self, row: Any) -> RegionMode:  # noqa: ANN401, ARG002
        return RegionMode.STATIONARY


def _columns(specs: Sequence[TopK]) -> tuple[Ints, ...]:
    """Return k, similarity and region."""
    rows = [(spec.k, int(spec.similarity), int(spec.region)) for spec in specs]
    k, similarity, region = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return k, similarity, region
