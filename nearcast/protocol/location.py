"""The position of a device, and the position that it sends to the server.

A private device sends a blurred position: a point drawn uniformly from the disc of its privacy radius
about the true position. The same point serves all its subscriptions for as long as the device is within
the radius of it. So a device that stays in one place shows one point, however often it has to report, and
the server cannot average several points. The device draws another point only when it has to send
something from farther away.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

from nearcast.errors import invalid
from nearcast.protocol.converters import distance_setting
from nearcast.protocol.shapes import number
from nearcast.v1 import geometry_pb2
from safe_region.earth.frame import EARTH_RADIUS_M, Frame, Point
from safe_region.scoring.formulas import length

_LON_MAX_DEG = 180.0
_LAT_MAX_DEG = 90.0
_INWARD = 1.0 - 1e-6
"""Keeps a point at the rim within the radius when its degrees are rounded."""
_COS_MIN = 1e-6
"""Lower bound of the cosine of the latitude: near a pole a metre is arbitrarily many degrees."""


class SharedLocation(NamedTuple):
    """A position as the device sends it to the server."""

    lon: float
    lat: float
    margin_m: float
    """The device is within this distance of it."""
    accuracy_m: float
    """Part of the margin that comes from the accuracy of the fix, not from the blur."""

    def position(self) -> geometry_pb2.Position:
        """Return the message of the position."""
        return geometry_pb2.Position(lon=self.lon, lat=self.lat)


class Location:
    """The true position of a device. The device sends only the result of `shared`.

    Parameters
    ----------
    lon, lat
        Degrees.
    accuracy_m
        Accuracy of the fix in metres.
    privacy_radius_m
        Largest distance of a blurred position from the true one; 0 for a device that is not private.
    chance
        Random generator of the blur; the system's generator by default.
    """

    def __init__(
        self,
        lon: float,
        lat: float,
        accuracy_m: float = 0.0,
        privacy_radius_m: float = 0.0,
        chance: random.Random | None = None,
    ) -> None:
        self.privacy_radius_m = distance_setting(privacy_radius_m, "privacy_radius_m")
        self._chance = chance or random.SystemRandom()
        self._blurred: tuple[float, float] | None = None
        self.move(lon, lat, accuracy_m)

    @property
    def is_private(self) -> bool:
        """Whether the device sends blurred positions only."""
        return self.privacy_radius_m > 0.0

    @property
    def is_exact(self) -> bool:
        """Whether the device sends its exact position."""
        return self.privacy_radius_m + self.accuracy_m == 0.0

    def move(self, lon: float, lat: float, accuracy_m: float = 0.0) -> None:
        """Set a new fix.

        Raises
        ------
        RefusedError
            If a number is out of its limits; the old fix is kept.
        """
        lon = _degrees(lon, "position.lon", _LON_MAX_DEG)
        lat = _degrees(lat, "position.lat", _LAT_MAX_DEG)
        self.accuracy_m = distance_setting(accuracy_m, "accuracy_m")
        self.lon, self.lat = lon, lat

    def project(self, frame: Frame) -> Point:
        """Return the true position on the plane."""
        return frame.project(self.lon, self.lat)

    def shared(self, frame: Frame) -> SharedLocation:
        """Return the position to send now; draw another blurred position if the last one is too far."""
        if not self.is_private:
            return SharedLocation(self.lon, self.lat, self.accuracy_m, self.accuracy_m)
        if self._blurred is None or self._is_far(frame, *self._blurred):
            self._blurred = self._drawn(frame)
        return SharedLocation(*self._blurred, self.privacy_radius_m + self.accuracy_m, self.accuracy_m)

    def is_still(self, frame: Frame, sent: SharedLocation) -> bool:
        """Return whether the device would send the same position again."""
        if not self.is_private:
            return (sent.lon, sent.lat) == (self.lon, self.lat)
        return (sent.lon, sent.lat) == self._blurred and not self._is_far(frame, *self._blurred)

    def distance_m(self, frame: Frame, sent: SharedLocation) -> float:
        """Return the distance of the device from a position that it has sent."""
        x_scale, y_scale = self._metres_per_degree(frame)
        return length((sent.lon - self.lon) * x_scale, (sent.lat - self.lat) * y_scale, 0.0)

    def _is_far(self, frame: Frame, lon: float, lat: float) -> bool:
        return self.distance_m(frame, SharedLocation(lon, lat, 0.0, 0.0)) > self.privacy_radius_m

    def _drawn(self, frame: Frame) -> tuple[float, float]:
        """Draw a point uniformly from the disc."""
        x_scale, y_scale = self._metres_per_degree(frame)
        radius_m = self.privacy_radius_m * _INWARD * math.sqrt(self._chance.random())
        angle = 2.0 * math.pi * self._chance.random()
        lon = self.lon + radius_m * math.cos(angle) / x_scale
        lat = self.lat + radius_m * math.sin(angle) / y_scale
        return (
            min(_LON_MAX_DEG, max(-_LON_MAX_DEG, lon)),
            min(_LAT_MAX_DEG, max(-_LAT_MAX_DEG, lat)),
        )

    def _metres_per_degree(self, frame: Frame) -> tuple[float, float]:
        """Return the factors of the frame; before the first welcome, the factors at the position."""
        if frame.x_m_per_deg > 0.0:
            return frame.x_m_per_deg, frame.y_m_per_deg
        scale = EARTH_RADIUS_M * math.pi / 180.0
        return scale * max(_COS_MIN, math.cos(math.radians(self.lat))), scale


def _degrees(value: float, field: str, most: float) -> float:
    degrees = number(value, field)
    if abs(degrees) > most:
        raise invalid(field, value, f"a finite number from -{most} to {most}")
    return degrees
