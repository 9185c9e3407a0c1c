"""Measure the rates of four tenants with the same load, one of which misbehaves for a time.

Each tenant has devices and publishers. They send as fast as they receive responses, or at a rate at which
all four together use about half of the server. Then the last tenant's callers stop, and either several of
its callers act at once instead or the tenant is silent. Three rates of the other tenants are compared:
before, when all four behave; when the fourth is silent; and when it misbehaves.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.benchmark import Progress, Row
from bench.neighbours.acts import ACTS, NOTHING, NamedAct, World, chosen
from bench.neighbours.companions import companion
from bench.neighbours.tokens import Tokens
from bench.neighbours.trial import Outcome, Setting, acted, acting, served
from identity.principal import Role

TENANTS = ("alder", "birch", "cedar", "thorn")
"""Names of the tenants; the last one misbehaves."""
MISBEHAVING = ("report-ids", "search-holes", "fat-reports", "durable", "hellos", "area-polygons")
_OBJECTS = 5_000
"""Objects of each tenant."""
_DEVICES, _PUBLISHERS = 4, 2
"""Callers of each tenant."""
_PER_S = {"device": 75.0, "publisher": 15.0}
"""Maximum messages a second of a caller, in the second of two measurements."""
_KINDS = ("reports", "publishes")
"""Entries of a sample."""


class Rates(NamedTuple):
    """Accepted messages a second, of all tenants that behave together."""

    by_kind: dict[str, float]
    least_share: float
    """Messages of the tenant with the fewest, as a share of the mean of the tenants that behave."""


def rates(samples: Sequence[Any], from_s: float, to_s: float) -> Rates:
    """Return the rates of all tenants but the last, within a span."""
    inside = [(time_s, counts) for time_s, counts in samples if from_s <= time_s <= to_s]
    (begin_s, first), (end_s, last) = inside[0], inside[-1]
    spent_s = max(end_s - begin_s, 1e-9)
    behaving = TENANTS[:-1]
    by_kind = {
        kind: sum(last[tenant][i] - first[tenant][i] for tenant in behaving) / spent_s
        for i, kind in enumerate(_KINDS)
    }
    totals = [sum(last[tenant]) - sum(first[tenant]) for tenant in behaving]
    share = min(totals) * len(totals) / sum(totals) if sum(totals) else 0.0
    return Rates(by_kind, share)


def measure(
    acts: Sequence[str], rounds: int, objects: int | None, setting: Setting, progress: Progress
) -> list[Row]:
    """Return two rows: rates of the tenants that behave, with and without the misbehaving one.

    Parameters
    ----------
    acts
        Concurrent acts of the misbehaving tenant; by default those in MISBEHAVING.
    rounds
        Trials of each sort.
    objects
        Objects of each tenant.
    setting
        The servers to measure.
    progress
        Receives the progress.
    """
    misbehaving = chosen(tuple(acts) or MISBEHAVING)
    world = World(objects=_OBJECTS if objects is None else objects)
    found: dict[tuple[bool, bool], list[Outcome]] = defaultdict(list)
    trials = [(paced, acts) for acts in (False, True) for paced in (False, True)]
    for number in range(rounds):
        for i, (is_paced, is_acting) in enumerate(trials if number % 2 == 0 else reversed(trials)):
            progress("tenants", number * len(trials) + i, rounds * len(trials))
            now = misbehaving if is_acting else [ACTS[NOTHING]]
            per_s = _PER_S if is_paced else dict.fromkeys(_PER_S, 0.0)
            found[is_paced, is_acting].append(_trial(now, world, setting, per_s))
    progress("tenants", rounds * len(trials), rounds * len(trials))
    return [
        {"variant": variant} | _row(misbehaving, found[is_paced, False], found[is_paced, True])
        for is_paced, variant in ((False, "tenants, closed loop"), (True, "tenants, at a rate"))
    ]


def _trial(acts: Sequence[NamedAct], world: World, setting: Setting, per_s: dict[str, float]) -> Outcome:
    with served(world, setting, TENANTS) as (server, tokens, readings):
        crowd = {tenant: _callers(tenant, tokens, per_s) for tenant in TENANTS}
        seconds = setting.phases.during_s
        with (
            companion("bench.neighbours.crowd", server.address, first=crowd) as load,
            acting(acts, server, tokens, seconds, TENANTS[-1]) as actors,
        ):
            load.await_ready()
            begin_s = time.monotonic() + setting.warm_s
            spans, counts, found = acted(actors, load, begin_s, setting.phases, on_act=load.send)
        return Outcome(spans, readings, found or {}, counts, server.is_alive())


def _callers(tenant: str, tokens: Tokens, per_s: dict[str, float]) -> list[dict[str, Any]]:
    """Return kinds, names, tokens and rates of a tenant's callers.

    Devices have the token of a gateway, whose rate limit does not bound them.
    """
    gateway = tokens.text("gate", Role.GATEWAY, tenant)
    names = [f"publisher-{i}" for i in range(_PUBLISHERS)]
    callers = [("device", f"device-{i}", gateway) for i in range(_DEVICES)]
    callers += [("publisher", name, tokens.text(name, Role.PUBLISHER, tenant)) for name in names]
    return [
        {"kind": kind, "name": name, "token": token, "per_s": per_s[kind]}
        for kind, name, token in callers
    ]


def _row(acts: Sequence[NamedAct], silent: Sequence[Outcome], found: Sequence[Outcome]) -> Row:
    before = [_rates(one, "before_s", "act_s") for one in found]
    during = [_rates(one, "act_s", "calm_s") for one in found]
    after = [_rates(one, "calm_s", "end_s") for one in found]
    idle = [_rates(one, "act_s", "calm_s") for one in silent]
    columns: Row = {
        "what": f"one of {len(TENANTS)} tenants: {', '.join(one.name for one in acts)}",
        "rounds": len(found),
    }
    for kind in _KINDS:
        name = f"{kind}_per_s"
        columns[f"{name}_without"] = _median(before, kind)
        columns[f"{name}_silent"] = _median(idle, kind)
        columns[name] = _median(during, kind)
        columns[f"{name}_after"] = _median(after, kind)
        pairs = zip(before, during, strict=True)
        ratio = statistics.median(b.by_kind[kind] / max(a.by_kind[kind], 1e-9) for a, b in pairs)
        columns[f"{kind}_ratio"] = round(ratio, 3)
    columns["ratio"] = min(columns[f"{kind}_ratio"] for kind in _KINDS)
    calls: dict[str, Counter[str]] = {one.name: Counter() for one in acts}
    for outcome in found:
        for name, counts in outcome.counts.items():
            calls[name].update(counts)
    return columns | {
        "least_share": round(statistics.median(one.least_share for one in during), 3),
        "honest_accepted": sum(_accepted(one) for one in (*silent, *found)),
        "honest_refused": sum(sum(one.found["refused"].values()) for one in found),
        "servers_ended": sum(not one.is_alive for one in found),
        "acts_counts": {name: dict(counts) for name, counts in calls.items()},
        "lists_audited": 0,
        "mismatches": 0,
    }


def _rates(outcome: Outcome, begin: str, end: str) -> Rates:
    spans = outcome.spans
    return rates(outcome.found["samples"], getattr(spans, begin), getattr(spans, end))


def _accepted(outcome: Outcome) -> int:
    """Return the number of accepted messages of the tenants that behave."""
    _, counts = outcome.found["samples"][-1]
    return sum(sum(counts[tenant]) for tenant in TENANTS[:-1])


def _median(found: Sequence[Rates], kind: str) -> float:
    return round(statistics.median(one.by_kind[kind] for one in found), 1)
