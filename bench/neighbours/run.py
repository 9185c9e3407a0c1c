"""Measure the effect of one caller, acting within its rights, on honest callers of the same server.

A trial has a fresh server with objects, an honest device that reports and an honest publisher, each at a
fixed rate and both in one process, and another process that acts for a time (`bench.neighbours.acts` is
the table). Trials of acts alternate with trials without an act, in every round; a row has medians.

In `TenantsBenchmark` there are instead four tenants with equal loads, one of which misbehaves. In
`VersionsBenchmark` no caller misbehaves, and two servers are compared.
"""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from bench.benchmark import Benchmark, Row
from bench.neighbours.acts import ACTS, NOTHING, NamedAct, World, chosen
from bench.neighbours.experiments import Callers, NeighboursParameters
from bench.neighbours.rows import row
from bench.neighbours.tenants import measure as measure_tenants
from bench.neighbours.trial import Outcome, Phases, Setting, served, trial
from bench.neighbours.versions import measure as measure_versions
from identity.principal import Role

_CALLERS: dict[Role | None, Callers] = {
    Role.DEVICE: "devices",
    Role.GATEWAY: "devices",
    Role.PUBLISHER: "publishers",
    Role.OPERATOR: "operators",
    None: "strangers",
}


def setting_of(parameters: NeighboursParameters) -> Setting:
    """Return the setting of all trials, after a server has compiled all missing kernels.

    The memory of compiling is thus not part of later servers.
    """
    setting = Setting(
        Phases(parameters.before_s, parameters.during_s, parameters.after_s),
        parameters.messages_per_s,
        parameters.server_command,
        parameters.server_flags,
    )
    with served(World(objects=0), setting):
        pass
    return setting


class ActsBenchmark(Benchmark[NeighboursParameters]):
    """Measure acts of one caller beside honest callers: all acts in turn, as one point."""

    VARIANTS: ClassVar = ("acts",)

    @classmethod
    def check(cls, variant: str, parameters: NeighboursParameters) -> None:
        """Require acts that exist."""
        del variant
        chosen(parameters.acts)

    def measure(self, variant: str, parameters: NeighboursParameters) -> list[Row]:
        """Measure trials with and without acts in turn; return a row for each act, as its variant."""
        del variant
        worlds: dict[World, list[NamedAct]] = defaultdict(list)
        for act in chosen(parameters.acts):
            if _CALLERS[act.role] == parameters.callers:
                world = act.world
                if parameters.objects is not None:
                    world = world._replace(objects=parameters.objects)
                worlds[world].append(act._replace(world=world))
        setting, rounds = setting_of(parameters), parameters.rounds
        total = rounds * sum(1 + len(acts) for acts in worlds.values())
        found: dict[tuple[World, str], list[Outcome]] = defaultdict(list)
        for number in range(rounds):
            for world, others in worlds.items():
                nothing = ACTS[NOTHING]
                for act in [nothing, *others] if number % 2 == 0 else [*others, nothing]:
                    self.progress(act.name, sum(map(len, found.values())), total)
                    found[world, act.name].append(trial(act, world, setting))
        self.progress("acts", total, total)
        return [
            row(act, found[world, NOTHING], found[world, act.name])
            for world, others in worlds.items()
            for act in others
        ]


class TenantsBenchmark(ActsBenchmark):
    """Measure four tenants, one of which misbehaves."""

    VARIANTS: ClassVar = ("tenants",)

    def measure(self, variant: str, parameters: NeighboursParameters) -> list[Row]:
        """Return two rows: in a closed loop, and at a rate."""
        del variant
        setting = setting_of(parameters)
        return measure_tenants(
            parameters.acts, parameters.rounds, parameters.objects, setting, self.progress
        )


class VersionsBenchmark(ActsBenchmark):
    """Measure the cost of a message on this server and on another one, without misbehaviour."""

    VARIANTS: ClassVar = ("versions",)

    def measure(self, variant: str, parameters: NeighboursParameters) -> list[Row]:
        """Return a row for reports and one for publications."""
        del variant
        setting = setting_of(parameters)
        return measure_versions(parameters.rounds, parameters.objects, setting, self.progress)
