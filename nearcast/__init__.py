"""SDK of nearcast: exact results for the position of a device, with few messages in between.

It uses asyncio. `nearcast.sync` has the same calls for programs without an event loop. The SDK logs with
``logging.getLogger("nearcast")``.

Examples
--------
::

    async with nearcast.connect("localhost:7433") as client:
        device = await client.attach("device-7", lon=14.50, lat=35.89)
        subscription = await device.subscribe(TopK(keywords={"sushi", "tea"}, k=5, alpha=0.4))
        await device.move(lon=14.52, lat=35.90)
        for match in subscription.results():
            print(match.object.keywords, match.distance_m)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from nearcast.clause import Clause
from nearcast.errors import ClosedError, NearcastError, Reason, RefusedError, UnavailableError
from nearcast.geofence import Geofence, OsRegion, OsRegions
from nearcast.model import (
    Boolean,
    CallerUsage,
    Change,
    ChangeKind,
    ChangeReason,
    ClusterNode,
    ClusterNodeState,
    Counters,
    Distribution,
    GeoObject,
    Last,
    LiveObject,
    LogServer,
    LogStream,
    Match,
    ServerState,
    ServerStatus,
    Spec,
    SubscriptionState,
    TopK,
)
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import Bounds, Circle, ObjectArea, Polygon, Range, Rectangle
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity
from safe_region.scoring.idf import IdfError, IdfTable

if TYPE_CHECKING:
    from nearcast import sync
    from nearcast.client import Client, Fleet, connect
    from nearcast.device import Device
    from nearcast.protocol.keyword_warnings import KeywordWarning
    from nearcast.protocol.placement import PlacementWarning
    from nearcast.protocol.subscription import Subscription
    from nearcast.publisher import Publisher
    from nearcast.transport.channel import Tls, TokenSource

_MODULES = {
    "Client": "client",
    "Device": "device",
    "Fleet": "client",
    "KeywordWarning": "protocol.keyword_warnings",
    "PlacementWarning": "protocol.placement",
    "Publisher": "publisher",
    "Subscription": "protocol.subscription",
    "Tls": "transport.channel",
    "TokenSource": "transport.channel",
    "connect": "client",
}
"""Modules of the names that need gRPC and messages. They are imported when a name is used, so that other
programs can use the model, the limits and the checks without them."""

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
    "ClusterNode",
    "ClusterNodeState",
    "Counters",
    "Device",
    "Distribution",
    "Fleet",
    "Frame",
    "GeoObject",
    "Geofence",
    "IdfError",
    "IdfTable",
    "KeywordWarning",
    "Last",
    "LiveObject",
    "LogServer",
    "LogStream",
    "Match",
    "NearcastError",
    "ObjectArea",
    "OsRegion",
    "OsRegions",
    "PlacementWarning",
    "Polygon",
    "Publisher",
    "Range",
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
    "TokenSource",
    "TopK",
    "UnavailableError",
    "connect",
    "sync",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from nearcast.version import installed_version  # noqa: PLC0415 - it takes longer than all else

        return installed_version()
    if name == "sync":
        return import_module("nearcast.sync")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"nearcast.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "sync"})
