"""Run one trial: a fresh server, honest callers, and for a time callers that act."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench.neighbours import honest as honest_callers
from bench.neighbours.acts import NamedAct, World
from bench.neighbours.companions import Companion, companion
from bench.neighbours.counters import counters
from bench.neighbours.readings import Readings
from bench.neighbours.tokens import Tokens
from bench.neighbours.world import serving
from bench.server.processes import Process
from identity.principal import Role

_LATE_S = 5.0
"""Callers that act write the outcomes of their calls within this time, or are killed."""
_RESULT_S = 120.0
_OPERATOR = "watch"


class Phases(NamedTuple):
    """Lengths of the measurements of honest callers before, during and after an act."""

    before_s: float = 5.0
    during_s: float = 8.0
    after_s: float = 12.0


_PHASES = Phases()


@dataclass(frozen=True, slots=True)
class Setting:
    """The common setting of all trials of a run."""

    phases: Phases = _PHASES
    messages_per_s: float = 20.0
    """Reports, and as many requests to publish."""
    server_command: str = ""
    server_flags: tuple[str, ...] = ()
    warm_s: float = 1.0
    """Time from the first responses of both honest callers until measurements count."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Times of the phases, in monotonic seconds."""

    before_s: float
    act_s: float
    calm_s: float
    """Time from which no caller acts."""
    end_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of one trial."""

    spans: Spans
    readings: Readings
    found: dict[str, Any]
    """By honest caller: counts, and latencies as pairs of a message's due time and its latency."""
    counts: dict[str, dict[str, int]]
    """Outcomes of the acting callers' calls, by act; empty if the process was killed."""
    is_alive: bool
    """Whether the server still runs."""
    server_counts: dict[str, int] = field(default_factory=dict)
    """Counters of the server since its start; empty if it did not respond at the end."""


@contextmanager
def served(
    world: World, setting: Setting, tenants: Sequence[str] = ("",)
) -> Iterator[tuple[Process, Tokens, Readings]]:
    """Run a fresh server with the objects of each tenant, and sample its process."""
    with tempfile.TemporaryDirectory(prefix="neighbours-") as temporary:
        folder = Path(temporary)
        tokens = Tokens(folder)
        with (
            serving(
                world, folder, tokens, setting.server_command, setting.server_flags, tenants
            ) as server,
            Readings(server) as readings,
        ):
            yield server, tokens, readings


@contextmanager
def acting(
    acts: Sequence[NamedAct], server: Process, tokens: Tokens, seconds: float, tenant: str = ""
) -> Iterator[Companion]:
    """Prepare callers that act once they receive a line, each with its own token."""
    orders = [
        {
            "act": one.name,
            "name": f"actor-{one.name}",
            "token": tokens.text(f"actor-{one.name}", one.role, tenant) if one.role else "",
        }
        for one in acts
    ]
    module = "bench.neighbours.acting"
    with companion(module, server.address, repr(seconds), first=orders) as found:
        found.await_ready()
        yield found


def acted(
    actors: Companion,
    load: Companion,
    begin_s: float,
    phases: Phases,
    on_act: Callable[[], None] = lambda: None,
) -> tuple[Spans, Any, Any]:
    """Let callers act when it is time; return the spans, their counts, and the honest callers' results.

    Parameters
    ----------
    actors, load
        The processes of the callers that act, and of the honest ones.
    begin_s
        Time from which the measurements of honest callers count.
    phases
        The lengths of the phases before, during and after the act.
    on_act
        Called when the act starts.
    """
    time.sleep(max(0.0, begin_s + phases.before_s - time.monotonic()))
    act_s = time.monotonic()
    on_act()
    actors.send()
    counts = actors.result(phases.during_s + _LATE_S)
    calm_s = act_s + phases.during_s
    time.sleep(max(0.0, calm_s + phases.after_s - time.monotonic()))
    end_s = time.monotonic()
    load.send()
    return Spans(begin_s, act_s, calm_s, end_s), counts or {}, load.result(_RESULT_S)


def trial(act: NamedAct, world: World, setting: Setting) -> Outcome:
    """Measure an honest device and an honest publisher before, during and after an act.

    Raises
    ------
    BenchError
        If a process does not start.
    """
    with served(world, setting) as (server, tokens, readings):
        first = {
            "device": tokens.text(honest_callers.DEVICE, Role.DEVICE),
            "publisher": tokens.text(honest_callers.PUBLISHER, Role.PUBLISHER),
        }
        module, pace = "bench.neighbours.honest", repr(setting.messages_per_s)
        seconds = setting.phases.during_s
        with (
            companion(module, server.address, pace, first=first) as load,
            acting([act], server, tokens, seconds) as actors,
        ):
            load.await_ready()
            begin_s = time.monotonic() + setting.warm_s
            spans, counts, found = acted(actors, load, begin_s, setting.phases)
            server_counts = counters(server.address, tokens.text(_OPERATOR, Role.OPERATOR))
        return Outcome(spans, readings, found or {}, counts, server.is_alive(), server_counts)
