"""List all suites of experiments, and find experiments by name."""

from __future__ import annotations

from collections.abc import Sequence

from bench.ap_plus.experiments import AP_PLUS
from bench.ap_tree.experiments import AP_TREE
from bench.authentication.experiments import AUTHENTICATION
from bench.berlinmod.experiments import BERLINMOD
from bench.cluster.experiments import CLUSTER
from bench.dskype.experiments import DSKYPE
from bench.errors import BenchError
from bench.experiment import Named, Suite
from bench.gateway.experiments import GATEWAY
from bench.lamps.experiments import LAMPS
from bench.match.experiments import MATCH
from bench.neighbours.experiments import NEIGHBOURS
from bench.publish.experiments import PUBLISH
from bench.ranges.experiments import RANGES
from bench.recovery.experiments import RECOVERY
from bench.retrieve.experiments import RETRIEVE
from bench.rt_tree.experiments import RT_TREE
from bench.server.experiments import SERVER
from bench.silence.experiments import SILENCE
from bench.skype.experiments import SKYPE

SUITES: tuple[Suite, ...] = (
    *(LAMPS, MATCH, RETRIEVE, SILENCE, AP_TREE, AP_PLUS, RT_TREE, RANGES, SKYPE, DSKYPE, BERLINMOD),
    *(PUBLISH, RECOVERY, SERVER, AUTHENTICATION, NEIGHBOURS, GATEWAY, CLUSTER),
)


def experiments() -> list[Named]:
    """Return all experiments."""
    return [Named(suite, one) for suite in SUITES for one in suite.experiments]


def found(names: Sequence[str]) -> list[Named]:
    """Return the experiments of these names, each once; the name of a suite means all of its experiments.

    Raises
    ------
    BenchError
        If a name has no experiment.
    """
    known = experiments()
    chosen: dict[str, Named] = {}
    for name in names:
        mine = [one for one in known if name in (one.name, one.suite.name)]
        if not mine:
            raise BenchError(f"experiment is {name!r}, must be one of {_nearest(name, known)}")
        chosen |= {one.name: one for one in mine}
    return list(chosen.values())


def _nearest(name: str, known: Sequence[Named]) -> str:
    """Return the experiments of the suite that a name starts with, or all suites."""
    suite = name.partition("/")[0]
    mine = [one.name for one in known if one.suite.name == suite]
    return ", ".join(mine or [f"{one.name}/..." for one in SUITES])
