"""`bench neighbours`: what one caller within its rights does to honest callers of the same server.

A trial is a fresh server with objects, an honest device that reports and an honest publisher, each at a
pace and both in a process of their own, and another process that acts for a while
(`bench.neighbours.acts` is the table). Trials of acts alternate with trials in which nobody acts, in
every round; a row has medians.

With `tenants` there are four tenants with a load of their own instead, of which one misbehaves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from bench.neighbours.acts import ACTS, NOTHING, NamedAct, World, chosen
from bench.neighbours.rows import row
from bench.neighbours.tenants import measure as measure_tenants
from bench.neighbours.trial import Outcome, Phases, Setting, served, trial
from bench.reports import Progress, Row


def run(
    progress: Progress,
    *,
    acts: Sequence[str],
    rounds: int,
    seconds: tuple[float, float, float],
    objects: int | None = None,
    tenants: bool = False,
    **setting: Any,  # noqa: ANN401
) -> list[Row]:
    """Measure acts; `setting` are fields of Setting.

    Parameters
    ----------
    acts
        Names; all without any.
    objects
        How many there are, in place of each act's own number; of each tenant if there are several.
    tenants
        Four tenants, of which one misbehaves by all the acts at once.

    Raises
    ------
    BenchError
        If an act is not known, or a process does not start.
    """
    common = Setting(Phases(*seconds), **setting)
    worlds: dict[World, list[NamedAct]] = defaultdict(list)
    for act in chosen(tuple(acts)):
        world = act.world if objects is None else act.world._replace(objects=objects)
        worlds[world].append(act._replace(world=world))
    with served(World(objects=0), common):
        pass  # it has compiled what nobody had yet: the memory which that takes is not later ones'
    if tenants:
        return measure_tenants(acts, rounds, objects, common, progress)
    total = rounds * sum(1 + len(found) for found in worlds.values())
    done = 0
    found: dict[tuple[World, str], list[Outcome]] = defaultdict(list)
    for number in range(rounds):
        for world, others in worlds.items():
            nothing = ACTS[NOTHING]
            order = [nothing, *others] if number % 2 == 0 else [*others, nothing]
            for act in order:
                progress(act.name, done, total)
                found[world, act.name].append(trial(act, world, common))
                done += 1
    progress("neighbours", total, total)
    return [
        row(act, found[world, NOTHING], found[world, act.name])
        for world, others in worlds.items()
        for act in others
    ]
