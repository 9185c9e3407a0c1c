"""Convert modes of safe regions to messages."""

from __future__ import annotations

from nearcast.errors import invalid
from nearcast.v1 import subscriptions_pb2
from safe_region.regions.region import RegionMode


def region_message(region: RegionMode) -> str:
    """Return the wire name of a mode of safe regions.

    Raises
    ------
    RefusedError
        If the value is not a `RegionMode`.
    """
    if not isinstance(region, RegionMode):
        raise invalid("spec.region", region, f"a RegionMode: {', '.join(RegionMode.__members__)}")
    return subscriptions_pb2.RegionMode.Name(int(region))
