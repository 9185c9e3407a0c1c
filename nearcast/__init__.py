"""SDK of nearcast: exact results for the position of a device, with few messages in between.

Example
-------
::

    async with nearcast.connect("localhost:7433") as client:
        device = await client.attach("device-7", lon=14.50, lat=35.89)
        subscription = await device.subscribe(TopK(keywords={"sushi", "tea"}, k=5, alpha=0.4))
        await device.move(lon=14.52, lat=35.90)
        for match in subscription.results():
            print(match.object.keywords, match.distance_m)
"""

from nearcast.clause import Clause
from nearcast.client import Client, Fleet, connect
from nearcast.device import Device
from nearcast.errors import ClosedError, NearcastError, Reason, RefusedError, UnavailableError
from nearcast.geofence import Geofence
from nearcast.model import (
    Boolean,
    CallerUsage,
    Change,
    ChangeKind,
    ChangeReason,
    Counters,
    Distribution,
    GeoObject,
    Last,
    LiveObject,
    Match,
    ServerState,
    ServerStatus,
    Spec,
    SubscriptionState,
    TopK,
)
from nearcast.protocol.placement import PlacementWarning
from nearcast.protocol.subscription import Subscription
from nearcast.publisher import Publisher
from nearcast.transport.channel import Tls
from safe_region.earth.shapes import Bounds, Circle, Polygon, Rectangle
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity
from safe_region.scoring.idf import IdfError, IdfTable

__all__ = [
    "Boolean",
    "Bounds",
    "CallerUsage",
    "Change",
    "ChangeKind",
    "ChangeReason",
    "Circle",
    "Clause",
    "Client",
    "ClosedError",
    "Counters",
    "Device",
    "Distribution",
    "Fleet",
    "GeoObject",
    "Geofence",
    "IdfError",
    "IdfTable",
    "Last",
    "LiveObject",
    "Match",
    "NearcastError",
    "PlacementWarning",
    "Polygon",
    "Publisher",
    "Reason",
    "Rectangle",
    "RefusedError",
    "RegionMode",
    "ServerState",
    "ServerStatus",
    "Similarity",
    "Spec",
    "Subscription",
    "SubscriptionState",
    "Tls",
    "TopK",
    "UnavailableError",
    "connect",
]


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nearcast.version import installed_version  # noqa: PLC0415 - what reads it takes longer than all else

    return installed_version()
