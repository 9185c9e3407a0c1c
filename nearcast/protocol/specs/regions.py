"""Validate modes of safe regions."""

from __future__ import annotations

from nearcast.errors import invalid
from safe_region.regions.region import RegionMode


def checked_region(region: RegionMode) -> RegionMode:
    """Return a mode of safe regions.

    Raises
    ------
    RefusedError
        If the value is not a `RegionMode`.
    """
    if not isinstance(region, RegionMode):
        raise invalid("spec.region", region, f"a RegionMode: {', '.join(RegionMode.__members__)}")
    return region
