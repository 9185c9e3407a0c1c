"""Options of a replay."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from nearcast import RegionMode, Tls
from nearcast.limits import SPEED_MAX_MPS

PROCESSES_MAX = 64
TIMES_MAX = 1_000_000.0


class ReplayError(Exception):
    """The server does not fit the simulation, or an option is outside its limits."""


class ReplayClock(NamedTuple):
    """The clock of the server, and the pace of ticks.

    Parameters
    ----------
    times
        The factor of real time; None for as fast as possible.
    is_real
        Whether the server runs in real time; else the replay drives its clock.
    """

    times: float | None = None
    is_real: bool = False

    @classmethod
    def parse(cls, text: str) -> ReplayClock:
        """Read `virtual`, `real` or a number.

        Raises
        ------
        ReplayError
            If it is none of these, or a number outside its limits.
        """
        if text in ("virtual", "real"):
            return cls(1.0, is_real=True) if text == "real" else cls()
        try:
            times = float(text)
        except ValueError:
            times = math.nan
        if not 0.0 < times <= TIMES_MAX:
            raise ReplayError(
                f"clock is {text!r}, must be virtual, real, or a number greater than 0 and at most "
                f"{TIMES_MAX:,.0f}"
            )
        return cls(times)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options of a replay.

    Parameters
    ----------
    target
        The server's address.
    token
        The token for the server.
    fleet_count
        Streams that the devices of a process are spread over.
    audit_every
        Ticks between audits; the first and the last tick are always audited.
    audit_share
        Fraction of the results that an audit checks, a different sample each time.
    region
        The mode of the safe region of all moving top-k subscriptions.
    clock
        The kind of time, and its pace.
    tls
        How the server's certificate is verified; None for a server without TLS.
    insecure
        Whether the token may be sent to another machine without TLS.
    program
        The command line of a program that has the devices (`simulator.replay.program_devices`); empty
        for devices of this process. In virtual time only.
    speed_max_mps
        The highest speed of the devices, as an app would assume it: the fixes that they need are counted
        by it.

    Raises
    ------
    ReplayError
        If one is outside its limits.
    """

    target: str
    token: str | None = None
    fleet_count: int = 4
    audit_every: int = 15
    audit_share: float = 1.0
    region: RegionMode = RegionMode.ANCHORED
    clock: ReplayClock = field(default_factory=ReplayClock)
    tls: Tls | None = None
    insecure: bool = False
    program: tuple[str, ...] = ()
    speed_max_mps: float = 36.0

    def __post_init__(self) -> None:
        for name in ("fleet_count", "audit_every"):
            if getattr(self, name) < 1:
                raise ReplayError(f"{name} is {getattr(self, name)}, must be at least 1")
        if self.program and self.clock.is_real:
            raise ReplayError("clock is real, must be virtual for devices of another program")
        if not 0.0 < self.speed_max_mps <= SPEED_MAX_MPS:
            raise ReplayError(
                f"speed_max_mps is {self.speed_max_mps}, must be greater than 0 and at most "
                f"{SPEED_MAX_MPS:,.0f}"
            )
        if not 0.0 < self.audit_share <= 1.0:
            raise ReplayError(f"audit_share is {self.audit_share}, must be greater than 0 and at most 1")
