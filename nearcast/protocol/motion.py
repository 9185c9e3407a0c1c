"""Heading and speed of a device."""

from __future__ import annotations

from typing import NamedTuple

from nearcast.errors import invalid
from nearcast.protocol.shapes import number

_HEADING_DEG_MAX = 360.0
SPEED_MPS_MAX = 10_000.0


class Motion(NamedTuple):
    """Heading, clockwise from north, and speed; None if unknown."""

    heading_deg: float | None = None
    speed_mps: float | None = None

    @classmethod
    def checked(cls, heading_deg: float | None, speed_mps: float | None) -> Motion:
        """Validate heading and speed, and return the motion.

        Raises
        ------
        RefusedError
            If a number is out of its limits.
        """
        if heading_deg is not None:
            limit = f"a number of degrees from -{_HEADING_DEG_MAX:g} to {_HEADING_DEG_MAX:g}, or None"
            given, heading_deg = heading_deg, number(heading_deg, "heading_deg", limit)
            if abs(heading_deg) > _HEADING_DEG_MAX:
                raise invalid("heading_deg", given, limit)
        if speed_mps is not None:
            limit = f"a number of metres a second from 0 to {SPEED_MPS_MAX:g}, or None"
            given, speed_mps = speed_mps, number(speed_mps, "speed_mps", limit)
            if not 0.0 <= speed_mps <= SPEED_MPS_MAX:
                raise invalid("speed_mps", given, limit)
        return cls(heading_deg, speed_mps)


UNKNOWN_MOTION = Motion()
