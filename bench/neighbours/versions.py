"""What a report and a publication cost two servers, this installation's and another's, side by side.

Both have the same objects and the same callers, which send as fast as they get responses. The callers of
one server are stopped while those of the other send: windows of less than a second alternate, so that a
core that is slower for a while is so for both. What is compared is the server's CPU a message.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bench.benchmark import Progress, Row
from bench.neighbours.acts import World
from bench.neighbours.companions import Companion, companion
from bench.neighbours.crowd import LIFETIME_S
from bench.neighbours.tokens import Tokens
from bench.neighbours.trial import Setting, served
from bench.server.processes import Process
from identity.principal import Role

_OBJECTS = 20_000
_CALLERS = {"device": ("reports", 8), "publisher": ("publishes", 4)}
"""Name of the row, and how many send at once."""
_ROLES = {"device": Role.GATEWAY, "publisher": Role.PUBLISHER}
"""A gateway's token: a device's own has a rate, which would be measured instead."""
_WARM_S = 2.0
_WINDOW_S = 0.3
_SETTLE_S = LIFETIME_S + 0.05
"""After callers are let go on or stopped: what was under way is responded to, and objects expire."""


class Window(NamedTuple):
    """One server's, while its callers sent."""

    begin_s: float
    end_s: float
    cpu_s: float


class Cost(NamedTuple):
    """Of one window."""

    per_s: float
    cpu_us: float


class _Server(NamedTuple):
    process: Process
    callers: Companion


def measure(rounds: int, objects: int | None, setting: Setting, progress: Progress) -> list[Row]:
    """Return a row for reports and one for publications.

    Parameters
    ----------
    rounds
        Pairs of windows.
    objects
        Of each server; 20,000 without.
    setting
        Its `server_command` starts the other server; without one both are this installation's, and the
        ratios show how far two equal servers are apart.
    progress
        Receives the progress.
    """
    world = World(objects=_OBJECTS if objects is None else objects)
    return [_row(kind, world, rounds, setting, progress) for kind in _CALLERS]


def _row(kind: str, world: World, rounds: int, setting: Setting, progress: Progress) -> Row:
    name, callers = _CALLERS[kind]
    windows: tuple[list[Window], list[Window]] = ([], [])
    own = Setting(server_flags=setting.server_flags)
    with _loaded(kind, world, own) as this, _loaded(kind, world, setting) as other:
        for number in range(rounds):
            progress(f"versions, {name}", number, rounds)
            turn = ((this, windows[0]), (other, windows[1]))
            for server, found in turn if number % 2 == 0 else reversed(turn):
                found.append(_window(server))
        progress(f"versions, {name}", rounds, rounds)
        costs, costs_other = (
            _costs(server, found) for server, found in zip((this, other), windows, strict=True)
        )
    ratios = [a.cpu_us / b.cpu_us for a, b in zip(costs, costs_other, strict=True)]
    quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
    return {
        "variant": name,
        "callers": callers,
        "objects": world.objects,
        "pairs": rounds,
        "per_s": round(statistics.median(one.per_s for one in costs), 1),
        "per_s_other": round(statistics.median(one.per_s for one in costs_other), 1),
        "cpu_us": round(statistics.median(one.cpu_us for one in costs), 1),
        "cpu_us_other": round(statistics.median(one.cpu_us for one in costs_other), 1),
        "cpu_ratio": round(statistics.median(ratios), 3),
        "cpu_ratio_q1": round(quartiles[0], 3),
        "cpu_ratio_q3": round(quartiles[2], 3),
        "lists_audited": 0,
        "mismatches": 0,
    }


@contextmanager
def _loaded(kind: str, world: World, setting: Setting) -> Iterator[_Server]:
    """Run a server whose callers are stopped."""
    module = "bench.neighbours.crowd"
    with (
        served(world, setting) as (process, tokens, _),
        companion(module, process.address, first=_crowd(kind, tokens)) as callers,
    ):
        callers.await_ready()
        time.sleep(_WARM_S)
        callers.stop()
        yield _Server(process, callers)


def _crowd(kind: str, tokens: Tokens) -> dict[str, list[dict[str, object]]]:
    names = [f"{kind}-{i}" for i in range(_CALLERS[kind][1])]
    return {
        "": [
            {"kind": kind, "name": name, "token": tokens.text(name, _ROLES[kind]), "per_s": 0.0}
            for name in names
        ]
    }


def _window(server: _Server) -> Window:
    server.callers.go_on()
    time.sleep(_SETTLE_S)
    begin_s, cpu_s = time.monotonic(), server.process.cpu_s()
    time.sleep(_WINDOW_S)
    window = Window(begin_s, time.monotonic(), server.process.cpu_s() - cpu_s)
    server.callers.stop()
    time.sleep(_SETTLE_S)
    return window


def _costs(server: _Server, windows: list[Window]) -> list[Cost]:
    """Let the callers end, and return what a message cost in each window."""
    server.callers.go_on()
    server.callers.send()
    server.callers.send()
    samples = server.callers.result(60.0)["samples"]
    found = []
    for window in windows:
        inside = [
            (time_s, sum(counts[""]))
            for time_s, counts in samples
            if window.begin_s <= time_s <= window.end_s
        ]
        (first_s, first), (last_s, last) = inside[0], inside[-1]
        per_s = (last - first) / (last_s - first_s)
        found.append(Cost(per_s, 1e6 * window.cpu_s / (per_s * (window.end_s - window.begin_s))))
    return found
