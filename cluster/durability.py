"""Whether the servers of a log sync each append to the disk, read from their monitoring ports (`/varz`).

With the default of NATS, a server syncs every two minutes, so a power cut that hits all of them loses
acknowledged messages.
"""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Collection, Iterable
from typing import Any

_WAIT_S = 5.0


def require_synced(
    members: Collection[str], monitors: Iterable[str], context: ssl.SSLContext | None = None
) -> list[str]:
    """Return the reasons why appends may not be on disk, as phrases; empty if all are.

    Parameters
    ----------
    members
        Names of the servers that have replicas; empty for a single server.
    monitors
        Addresses of monitoring ports, as http://host:port, or https.
    context
        What verifies those with https.
    """
    flaws, synced = [], set()
    for address in monitors:
        try:
            found = _read(f"{address.rstrip('/')}/varz", context)
        except (OSError, ValueError) as error:
            flaws.append(f"{address} cannot be read: {error}")
            continue
        name = str(found.get("server_name"))
        if found.get("jetstream", {}).get("config", {}).get("sync_always"):
            synced.add(name)
        else:
            flaws.append(f"server {name} does not sync each append: set sync_interval: always")
    if flaws:
        return flaws
    if not synced:
        return ["no monitoring port is known: --log-monitor"]
    unknown = sorted(set(members) - synced)
    return [f"the monitoring port of server {name} is not known: --log-monitor" for name in unknown]


def _read(url: str, context: ssl.SSLContext | None) -> dict[str, Any]:
    if not url.startswith(("http://", "https://")):
        raise ValueError("it must start with http:// or https://")
    with urllib.request.urlopen(url, timeout=_WAIT_S, context=context) as response:  # noqa: S310 - checked
        found: dict[str, Any] = json.load(response)
    return found
