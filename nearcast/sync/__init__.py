"""The SDK for programs without an event loop: scripts, notebooks, web applications with threads.

It has the calls of `nearcast`, which block until they are done. Each client runs the asyncio client on an
event loop in a thread of its own. Specs, objects, results and errors are those of `nearcast`. Any thread
may use a client, its devices and subscriptions. A program with an event loop uses `nearcast.connect`.

Examples
--------
::

    import nearcast.sync
    from nearcast import TopK

    with nearcast.sync.connect("localhost:7433") as client:
        device = client.attach("device-7", lon=14.50, lat=35.89)
        subscription = device.subscribe(TopK({"sushi", "tea"}, k=5), name="lunch")
        device.move(lon=14.52, lat=35.90)
        for match in subscription.results():
            print(match.object.keywords, match.distance_m)
"""

from nearcast.sync.client import Client, Fleet, connect
from nearcast.sync.device import Device
from nearcast.sync.publisher import Publisher
from nearcast.sync.subscription import Subscription

__all__ = ["Client", "Device", "Fleet", "Publisher", "Subscription", "connect"]
