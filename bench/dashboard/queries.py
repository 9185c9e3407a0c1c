"""Evaluate the part of PromQL that the dashboard's panels need, over a recording.

It consists of selectors with `=`, `!=` and `=~`; `rate` between two scrapes; `sum by` one label;
`histogram_quantile`. Variables of Grafana match everything. Any other query is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from bench.dashboard.recording import Labels, Scrape

_QUANTILE = re.compile(r"histogram_quantile\(([\d.]+), (.+)\)")
_SUM = re.compile(r"sum by \((\w+)\) \((.+)\)")
_RATE = re.compile(r"rate\((.+)\[\$__rate_interval\]\)")
_SELECTOR = re.compile(r"(\w+)(?:\{(.*)\})?")


class QueryError(ValueError):
    """A query has a form that is not supported."""


def names(query: str) -> set[str]:
    """Return the names of the metrics in a query."""
    return set(re.findall(r"\b((?:nearcast|process)_\w+)", query))


def evaluated(query: str, recording: Sequence[Scrape], at: int) -> dict[Labels, float]:
    """Return the values of a query at one of the scrapes, by labels.

    Raises
    ------
    QueryError
        If the query is not supported.
    """
    query = query.strip()
    if found := _QUANTILE.fullmatch(query):
        return _quantile(float(found[1]), evaluated(found[2], recording, at))
    if found := _SUM.fullmatch(query):
        return _summed(found[1], evaluated(found[2], recording, at))
    if found := _RATE.fullmatch(query):
        return _rate(found[1], recording, at)
    return _selected(query, recording[at])


def _selected(selector: str, scrape: Scrape) -> dict[Labels, float]:
    found = _SELECTOR.fullmatch(selector)
    if found is None:
        raise QueryError(f"query is {selector!r}, must be a selector, rate, sum by or histogram_quantile")
    return scrape.select(found[1], (found[2] or "").replace("$instance", ".*"))


def _rate(selector: str, recording: Sequence[Scrape], at: int) -> dict[Labels, float]:
    """Return the growth of counters a second since the previous scrape. One that fell has restarted."""
    if at == 0:
        return {}
    before, now = recording[at - 1], recording[at]
    seconds = max(1e-9, now.at_s - before.at_s)
    first = _selected(selector, before)
    return {
        labels: (value - first.get(labels, 0.0) if value >= first.get(labels, 0.0) else value) / seconds
        for labels, value in _selected(selector, now).items()
    }


def _summed(label: str, series: dict[Labels, float]) -> dict[Labels, float]:
    found: dict[Labels, float] = {}
    for labels, value in series.items():
        key = frozenset({(label, dict(labels).get(label, ""))})
        found[key] = found.get(key, 0.0) + value
    return found


def _quantile(share: float, buckets: dict[Labels, float]) -> dict[Labels, float]:
    """Return a quantile, interpolated within a bucket in proportion, as Prometheus does."""
    counts = sorted((float(dict(labels)["le"]), count) for labels, count in buckets.items())
    if not counts or not counts[-1][1]:
        return {}
    wanted = share * counts[-1][1]
    low, before = 0.0, 0.0
    for bound, count in counts:
        if count >= wanted:
            if math.isinf(bound):
                return {frozenset(): low}
            part = (wanted - before) / (count - before) if count > before else 1.0
            return {frozenset(): low + (bound - low) * part}
        low, before = bound, count
    return {}
