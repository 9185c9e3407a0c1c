"""How safe regions work, on the wire."""

from __future__ import annotations

from nearcast.errors import invalid
from nearcast.v1 import subscriptions_pb2
from safe_region.region import RegionMode


def region_message(region: RegionMode) -> str:
    """Write how the safe region of a subscription works: its name on the wire.

    Raises
    ------
    RefusedError
        If it is no `RegionMode`.
    """
    if not isinstance(region, RegionMode):
        raise invalid("spec.region", region, f"a RegionMode: {', '.join(RegionMode.__members__)}")
    return subscriptions_pb2.RegionMode.Name(int(region))
