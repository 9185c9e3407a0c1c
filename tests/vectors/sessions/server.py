"""A server for random sessions, by the rules of docs/protocol.md alone: it ranks everything each time.

It serves one device. Whatever it sends can be repeated, cut off or coalesced on the way.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from safe_region.scoring.formulas import length
from tests.vectors.sessions.messages import NOW_MS, reach, slack, welcome

_EXTRA = 2
"""Objects that a buffer has beyond the result."""

_EPOCHS = 2**63
"""Epochs start here: they have 64 bits."""


class Item(NamedTuple):
    """An object."""

    number: int
    lon: float
    lat: float
    r_m: float
    created_ms: int
    expiry_ms: int


class Query:
    """A subscription: its spec, and the bound that the device has."""

    def __init__(self, spec) -> None:
        self.spec = spec
        self.at = (0.0, 0.0)
        self.held: set[int] = set()
        self.reach = (math.inf, 0)

    @property
    def k(self):
        return self.spec["top_k"]["k"] if "top_k" in self.spec else None

    @property
    def radius_m(self):
        return self.spec["boolean"]["circle"]["radius_m"]

    @property
    def window_ms(self):
        return int(self.spec.get("window", {}).get("duration_ms", 0))


class Server:
    """The objects, the subscriptions of the device, and the deltas that it may still need."""

    def __init__(self, frame, draws) -> None:
        self.frame = frame
        self.now_ms = NOW_MS
        self.objects: dict[int, Item] = {}
        self.queries: dict[int, Query] = {}
        self.stream = deque()
        """Messages on their way to the device."""
        self._draws = draws
        self._latest = 0
        self._version = 0
        self._epoch = 1
        self._report_sequence = 0
        self._kept: list[dict] = []

    # -- objects ---------------------------------------------------------------------------------

    def publish(self, lon, lat, r_m, ttl_ms):
        self._latest += 1
        item = Item(self._latest, lon, lat, r_m, self.now_ms, self.now_ms + ttl_ms)
        self.objects[item.number] = item
        for number, query in self.queries.items():
            if self._length(query, item) < query.reach:
                self._send(number, query, "PUBLISHED", add=[item])

    def retract(self, number):
        del self.objects[number]
        for subscription, query in self.queries.items():
            if number in query.held:
                drop = [{"object_id": str(number), "reason": "DROP_REASON_RETRACTED"}]
                self._send(subscription, query, "RETRACTED", drop=drop)

    def pass_time(self, ms):
        self.now_ms += ms
        self.objects = {key: one for key, one in self.objects.items() if one.expiry_ms > self.now_ms}

    def result(self, query, point):
        """Return the ids of the result at a point, from the definition."""
        found = sorted((self._length(query, one, point), one.number) for one in self._live(query))
        if query.k is not None:
            return [number for _, number in found[: query.k]]
        return [number for (length_m, _), number in found if length_m <= query.radius_m]

    # -- the device ------------------------------------------------------------------------------

    def receive(self, request):
        """Process a request of the device."""
        ((kind, message),) = request.items()
        match kind:
            case "hello":
                self._hello(int(message.get("version", 0)), int(message.get("epoch", 0)))
            case "subscribe":
                query = self.queries[message["subscription_id"]] = Query(message["spec"])
                self._evaluate(message["subscription_id"], query, message["position"], "SUBSCRIBED")
            case "report":
                self._report_sequence = int(message["sequence"])
                for number in message["subscription_ids"]:
                    self._evaluate(number, self.queries[number], message["position"], "REPORTED")

    def coalesce(self):
        """Replace all deltas that wait by a snapshot of each subscription."""
        if any("delta" not in one for one in self.stream):
            return
        self.stream.clear()
        for number, query in self.queries.items():
            self._send_snapshot(number, query)

    def forget(self):
        """Restart: nothing of a conversation is kept."""
        self._epoch += 1
        self._kept.clear()
        self.stream.clear()

    def _hello(self, version, epoch):
        kept = [one for one in self._kept if int(one["delta"]["version"]) > version]
        resumed = epoch == _EPOCHS + self._epoch and len(kept) == self._version - version
        if not resumed:
            self._epoch += 1
            self._report_sequence = 0
            self._version, kept = max(self._version, version), []
        welcome = self._welcome(resumed=resumed)
        self.stream = deque([welcome, *kept])
        if not resumed:
            for number, query in self.queries.items():
                self._send_snapshot(number, query)
        welcome["welcome"]["version"] = str(self._version)

    def _welcome(self, *, resumed):
        listed = [(number, query.spec) for number, query in self.queries.items()]
        epoch = _EPOCHS + self._epoch
        step = welcome(0, listed, resumed=resumed, epoch=epoch, time_ms=self.now_ms, frame=self.frame)
        return step["message"]

    def _evaluate(self, number, query, position, cause):
        query.at = position["lon"], position["lat"]
        live = sorted(self._live(query), key=lambda one: self._length(query, one))
        if query.k is None:
            slack_m = self._draws.between(0.0, query.radius_m)
            query.reach = math.nextafter(query.radius_m + slack_m, math.inf), 0
            best = [one for one in live if self._length(query, one) < query.reach]
        else:
            best = live[: query.k + _EXTRA]
            rest = live[len(best) :]
            query.reach = self._length(query, rest[0]) if rest else (math.inf, 0)
        if cause == "SUBSCRIBED":
            query.held = set()
        ids = {one.number for one in best}
        drop = [
            {"object_id": str(one), "reason": "DROP_REASON_OUT_OF_REACH"}
            for one in sorted(query.held - ids)
        ]
        add = [one for one in best if one.number not in query.held]
        query.held &= ids
        self._send(number, query, cause, add=add, drop=drop, snapshot=cause == "SUBSCRIBED")

    def _send_snapshot(self, number, query):
        held = [self.objects[one] for one in sorted(query.held) if one in self.objects]
        live = [one for one in held if self._ends_ms(query, one) > self.now_ms]
        self._send(number, query, "RESUMED", add=live, snapshot=True)

    def _send(self, number, query, cause, *, add=(), drop=(), snapshot=False):
        query.held |= {one.number for one in add}
        query.held -= {int(one["object_id"]) for one in drop}
        self._version += 1
        x_m, y_m = self.frame.project(*query.at)
        message = {
            "version": str(self._version),
            "subscription_id": number,
            "anchor": {"x_m": x_m, "y_m": y_m},
            "add": [self._entry(one) for one in add],
            "drop": list(drop),
            "cause": f"CAUSE_{cause}",
            "snapshot": snapshot,
            "report_sequence": str(self._report_sequence),
            "time_ms": str(self.now_ms),
            **self._bound(query),
        }
        self.stream.append({"delta": message})
        self._kept = [*self._kept[-11:], {"delta": message}]

    def _bound(self, query):
        length_m, number = query.reach
        if query.k is not None:
            return {"reach": reach(length_m, number)}
        return {"slack": slack(max(0.0, length_m * (1.0 - 1e-15) - query.radius_m))}

    def _entry(self, item):
        x_m, y_m = self.frame.project(item.lon, item.lat)
        return {
            "object": {
                "id": str(item.number),
                "position": {"lon": item.lon, "lat": item.lat},
                "point": {"x_m": x_m, "y_m": y_m},
                "keywords": ["tea"],
                "created_ms": str(item.created_ms),
                "expiry_ms": str(item.expiry_ms),
            },
            "r_m": item.r_m,
        }

    def _live(self, query):
        return [one for one in self.objects.values() if self._ends_ms(query, one) > self.now_ms]

    def _ends_ms(self, query, item):
        window_ms = query.window_ms
        return min(item.expiry_ms, item.created_ms + window_ms) if window_ms else item.expiry_ms

    def _length(self, query, item, point=None):
        at = self.frame.project(*query.at) if point is None else point
        x_m, y_m = self.frame.project(item.lon, item.lat)
        constant_m = 0.0 if query.k is None else item.r_m
        return length(at[0] - x_m, at[1] - y_m, constant_m), item.number
