"""Geodesics of WGS84 by their integrals: a reference that is good everywhere and shares no code.

A geodesic from a point is a great circle of the auxiliary sphere; its length and the longitude it covers
are integrals along the arc, which are computed here by Gauss-Legendre quadrature to some nanometres. An
arc of at most pi that covers at most pi of longitude is a shortest way (Karney, "Algorithms for
geodesics", J. Geodesy 87, 2013, sections 2 and 3).
"""

from __future__ import annotations

import math

import numpy as np

SEMI_MAJOR_M = 6378137.0
FLAT = 1.0 / 298.257223563
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def end_of(lat: float, azimuth: float, arc: float) -> tuple[float, float, float]:
    """Follow a geodesic from longitude 0; return longitude, latitude and metres.

    Parameters
    ----------
    lat
        Where it starts, degrees.
    azimuth
        Clockwise from north, in radians, 0 to pi.
    arc
        How far on the auxiliary sphere, in radians.
    """
    beta = math.atan2((1.0 - FLAT) * math.sin(math.radians(lat)), math.cos(math.radians(lat)))
    sin0 = math.sin(azimuth) * math.cos(beta)  # of the azimuth at the equator
    cos0 = math.hypot(math.cos(azimuth), math.sin(azimuth) * math.sin(beta))
    start = math.atan2(math.sin(beta), math.cos(azimuth) * math.cos(beta))
    end = start + arc
    nodes = (end - start) / 2.0 * _NODES + (start + end) / 2.0
    weights = (end - start) / 2.0 * _WEIGHTS
    second2 = FLAT * (2.0 - FLAT) / (1.0 - FLAT) ** 2
    root = np.sqrt(1.0 + second2 * cos0**2 * np.sin(nodes) ** 2)
    metres = SEMI_MAJOR_M * (1.0 - FLAT) * float(weights @ root)
    shrunk = FLAT * sin0 * float(weights @ ((2.0 - FLAT) / (1.0 + (1.0 - FLAT) * root)))
    turned = math.atan2(sin0 * math.sin(end), math.cos(end)) - math.atan2(
        sin0 * math.sin(start), math.cos(start)
    )
    if turned < 0.0:
        turned += 2.0 * math.pi
    end_beta = math.atan2(cos0 * math.sin(end), math.hypot(cos0 * math.cos(end), sin0))
    end_lat = math.atan2(math.sin(end_beta), (1.0 - FLAT) * math.cos(end_beta))
    return math.degrees(turned - shrunk), math.degrees(end_lat), metres


def step_from(lon: float, lat: float, azimuth: float, metres: float) -> tuple[float, float]:
    """Return longitude and latitude a distance away in a direction (radians, clockwise from north)."""
    clockwise = azimuth % (2.0 * math.pi)
    is_west = clockwise > math.pi
    azimuth = 2.0 * math.pi - clockwise if is_west else clockwise
    low, high = 0.0, metres / (SEMI_MAJOR_M * (1.0 - FLAT))
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (low, middle) if end_of(lat, azimuth, middle)[2] > metres else (middle, high)
    turned, end_lat, _ = end_of(lat, azimuth, low)
    return lon + (-turned if is_west else turned), end_lat
