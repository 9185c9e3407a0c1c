"""A reading in the form of Prometheus: families of samples, in base units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeHistogramMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family

from server.distribution import Classes
from server.monitoring.catalogue import (
    COUNTERS,
    GAUGES,
    MEASURES,
    PREFIX,
    SILENCE,
    SILENCE_HELP,
    Metric,
)
from server.monitoring.readings import Reading
from server.runtime.lifecycle import ServerState

_UNITS_S = {"us": 1e-6, "ms": 1e-3}


def families_of(reading: Reading) -> Iterator[Family]:
    """Yield the families of a reading."""
    state = GaugeMetricFamily(
        f"{PREFIX}state", "1 for the current state of the server, 0 for the others.", labels=["state"]
    )
    for one in ServerState:
        state.add_metric([one.name], float(one is reading.state))
    yield state
    yield GaugeMetricFamily(
        f"{PREFIX}time_seconds", "Server time; 0 until it is known.", reading.time_ms / 1000.0
    )
    yield from _plain(reading.counters, COUNTERS, CounterMetricFamily)
    yield from _plain(reading.gauges, GAUGES, GaugeMetricFamily)
    for name, metric in MEASURES.items():
        buckets, total = _buckets(name, reading.measures[name])
        yield HistogramMetricFamily(family_name(name), metric.help_text, buckets=buckets, sum_value=total)
    buckets, total = _buckets(SILENCE, reading.measures[SILENCE])
    yield GaugeHistogramMetricFamily(
        family_name(SILENCE), SILENCE_HELP, buckets=buckets, gsum_value=total
    )


def _plain(
    values: Mapping[str, int],
    metrics: Mapping[str, Metric],
    kind: type[CounterMetricFamily | GaugeMetricFamily],
) -> Iterator[Family]:
    for name, metric in metrics.items():
        scale = _unit_s(name)
        if not metric.label:
            yield kind(family_name(name), metric.help_text, value=values[name] * scale)
            continue
        family = kind(family_name(name), metric.help_text, labels=[metric.label])
        for key, value in values.items():
            prefix, _, label = key.partition(".")
            if prefix == name and label:
                family.add_metric([label], value)
        yield family


def family_name(name: str) -> str:
    """Return the name of a metric for Prometheus, which requires seconds."""
    stem, _, unit = name.rpartition("_")
    return f"{PREFIX}{stem}_seconds" if unit in _UNITS_S else f"{PREFIX}{name}"


def _unit_s(name: str) -> float:
    return _UNITS_S.get(name.rpartition("_")[2], 1.0)


def _buckets(name: str, classes: Classes) -> tuple[list[tuple[str, float]], float]:
    """Return classes in the form of Prometheus: counts up to a bound, including it.

    A duration below a bound is also at most that; a number below one is at most one less.
    """
    unit_s = _unit_s(name)
    is_number = unit_s == 1.0
    found, count = [], 0
    for bound, more in zip(classes.bounds, classes.counts, strict=True):
        count += more
        upper = bound - 1 if is_number else bound * unit_s
        found.append(("+Inf" if bound == float("inf") else repr(upper), float(count)))
    return found, classes.total * unit_s
