"""What a command may not have: the refusal names field, value and limit, and nothing has changed.

Messages become commands and plans as in a server, without one. `tests/wire/test_bad_input.py` sends some
of them over the wire.
"""

from __future__ import annotations

from itertools import chain
from math import inf, nan

import pytest

from nearcast.errors import RefusedError
from nearcast.v1 import device_service_pb2, publisher_service_pb2, subscriptions_pb2
from safe_region.earth.frame import Area, Frame
from server import command as c
from server.commands.plan import Plan
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.limits import Limits
from server.model import Place
from server.session import Outbox
from server.transport import converters
from tests.wire.test_bad_input import (
    ObjectArea,
    Position,
    a_boolean,
    a_polygon,
    a_rectangle,
    a_spec,
    an_object,
    subscribe,
    windowed,
)

ELLIPSE, NEAREST = subscriptions_pb2.REGION_MODE_ELLIPSE, subscriptions_pb2.REGION_MODE_NEAREST
DAY_MS = 86_400_000
TTL = "1 to 31622400000"
BORDER = "lon 14.0 to 15.0, lat 35.0 to 36.0"
TALL = "a height of at most 100000.0 m"


class Core:
    """A coordinator with a device, and what its commands come to."""

    def __init__(self) -> None:
        self.coordinator = Coordinator(Frame.of(Area(14.0, 35.0, 15.0, 36.0)), Limits())
        self.line, batch = Outbox(), EvaluationBatch()
        self.coordinator.hello(c.Hello(self.line, "device", b"n", 0, Place(14.5, 35.5)), batch)
        self.coordinator.evaluate(batch)

    def published(self, *objects):
        request = publisher_service_pb2.PublishRequest(objects=objects)
        chunks = converters.objects_from(request, self.coordinator.limits)
        return self._planned(c.Publish(tuple(chain.from_iterable(chunks))))

    def subscribed(self, spec):
        request = device_service_pb2.AttachRequest(subscribe=subscribe(1, spec))
        return self._planned(converters.device_command_from(self.line, "device", request))

    def _planned(self, command):
        (decision,) = Planner(self.coordinator).plan_batch([command])
        if isinstance(decision, RefusedError):
            raise decision
        assert isinstance(decision, Plan)
        return decision

    def is_unchanged(self):
        coordinator = self.coordinator
        coordinator.check()
        return not coordinator.matching.objects and not coordinator.sessions["device"].handles


@pytest.fixture
def core():
    return Core()


def area(shape):
    return {"position": None, "area": shape}


LINE = ((14.1, 35.1), (14.2, 35.2), (14.2, 35.1), (14.1, 35.2))
MANY = tuple((14.1 + i / 1000, 35.1 + i * i / 1e5) for i in range(65))
ACROSS = ((14.1, 35.1), (14.2, 34.9), (14.2, 35.1))
NONE = ((14.1, 35.1), (14.2, inf), (14.2, 35.1))
WIDE = ((14.0, 35.0), (14.0, 36.0), (14.1, 35.0))

OBJECTS = [
    ({"keywords": []}, "keywords", "empty", "1 to 64 keywords"),
    ({"keywords": [f"w{i}" for i in range(65)]}, "keywords", "65 keywords", "1 to 64 keywords"),
    ({"keywords": ["x" * 65]}, "keywords[0]", "'xxx", "1 to 64 printable characters"),
    ({"keywords": ["a", "  "]}, "keywords[1]", "'  '", "1 to 64"),
    ({"keywords": ["a\x00b"]}, "keywords[0]", "'a\\x00b'", "printable"),
    ({"ttl_ms": 0}, "ttl_ms", "0", TTL),
    ({"ttl_ms": 31_622_400_001}, "ttl_ms", "31622400001", TTL),
    ({"position": None}, "position", "absent", "present"),
    ({"position": Position(lon=nan, lat=35.5)}, "position.lon", "nan", "-180"),
    ({"position": Position(lon=14.5, lat=inf)}, "position.lat", "inf", "-90"),
    ({"position": Position(lon=15.0001, lat=35.5)}, "position", "(15.0001, 35.5)", BORDER),
    ({"area": a_rectangle()}, "position", "present", "absent"),
    (area(ObjectArea()), "area.shape", "absent", "present"),
    (area(a_rectangle(lon_max=14.0)), "area.rectangle.lon_max", "14.0", "at least lon_min, 14.1"),
    (area(a_rectangle(lat_min=nan)), "area.rectangle.lat_min", "nan", "-90"),
    (area(a_rectangle(lon_max=15.001)), "area.rectangle", "(15.001, 35.2)", BORDER),
    (area(a_rectangle(lat_min=35.0, lat_max=35.9)), "area.rectangle", "a height of 100075", TALL),
    (area(a_polygon()), "area.polygon", "ring 0 has 0 vertices", "a simple polygon"),
    (area(a_polygon(*LINE)), "area.polygon", "ring 0", "without holes; its ring closes by itself"),
    (area(a_polygon(*MANY)), "area.polygon", "65 vertices", "at most 64 vertices"),
    (area(a_polygon(*ACROSS)), "area.polygon.vertices[1]", "(14.2, 34.9)", "lat 35.0 to 36.0"),
    (area(a_polygon(*NONE)), "area.polygon.vertices[1].lat", "inf", "-90"),
    (area(a_polygon(*WIDE)), "area.polygon", "a height of 111195", TALL),
    ({"payload": bytes(16_385)}, "payload", "16385 bytes", "at most 16384 bytes"),
    ({"key": "k" * 129}, "key", "'kkk", "0 to 128 printable characters"),
]
"""Changes of an object that is in order; then the field, and parts of the value and the limit."""


@pytest.mark.parametrize(("changes", "field", "value", "limit"), OBJECTS)
def test_a_bad_object(core, changes, field, value, limit):
    with pytest.raises(RefusedError) as refused:
        core.published(an_object(), an_object(**changes), an_object())
    error = refused.value
    assert error.field == f"objects[1].{field}"
    assert value in str(error.value)
    assert limit in error.limit
    assert core.is_unchanged()


@pytest.mark.parametrize("count", [0, 1001])
def test_too_few_and_too_many_objects(core, count):
    with pytest.raises(RefusedError) as refused:
        core.published(*[an_object()] * count)
    error = refused.value
    assert (error.field, error.value, error.limit) == ("objects", f"{count} entries", "1 to 1000 entries")


def test_the_same_key_twice_in_a_request(core):
    with pytest.raises(RefusedError) as refused:
        core.published(*[an_object(key="k")] * 2)
    assert (refused.value.field, refused.value.value) == ("objects[1].key", "'k'")
    assert core.is_unchanged()


SCALE = "1 to 20037508, or absent"
WITH_A_WINDOW = ", since there is a window"
SPECS = [
    (a_spec(keywords=[]), "top_k.keywords", "empty", "1 to 16 keywords"),
    (a_spec(keywords=[f"w{i}" for i in range(17)]), "top_k.keywords", "17 keywords", "1 to 16 keywords"),
    (a_spec(k=0), "top_k.k", "0", "1 to 100"),
    (a_spec(k=-1), "top_k.k", "-1", "1 to 100"),
    (a_spec(k=101), "top_k.k", "101", "1 to 100"),
    (a_spec(alpha=0.0), "top_k.alpha", "0.0", "0.001 to 0.999"),
    (a_spec(alpha=1.0), "top_k.alpha", "1.0", "0.001 to 0.999"),
    (a_spec(alpha=nan), "top_k.alpha", "nan", "0.001 to 0.999"),
    (a_spec(similarity=9), "top_k.similarity", "9", "1 (JACCARD)"),
    *(
        (a_spec(distance_scale_m=scale_m), "top_k.distance_scale_m", str(scale_m), SCALE)
        for scale_m in (0.999, -5000.0, 20_037_509.0, inf, nan)
    ),
    (subscriptions_pb2.SubscriptionSpec(), "kind", "absent", "one of top_k, boolean"),
    (windowed(a_spec()), "window.last", "absent", "duration_ms or count"),
    (windowed(a_spec(), duration_ms=0), "window.duration_ms", "0", "at least 1"),
    (windowed(a_boolean(), duration_ms=-5), "window.duration_ms", "-5", "at least 1"),
    (windowed(a_boolean(), count=0), "window.count", "0", "at least 1"),
    (windowed(a_spec(), count=-1), "window.count", "-1", "at least 1"),
    (windowed(a_spec(), duration_ms=367 * DAY_MS), "window.duration_ms", str(367 * DAY_MS), TTL),
    (windowed(a_boolean(), count=2**62), "window.count", str(2**62), "1 to 100000000"),
    (windowed(a_spec(), ELLIPSE, count=5), "region", "ELLIPSE", f"ANCHORED or STATIONARY{WITH_A_WINDOW}"),
    (windowed(a_boolean(), NEAREST, count=5), "region", "NEAREST", f"ANCHORED{WITH_A_WINDOW}"),
]
"""A spec; then the field, the value, and a part of the limit."""


@pytest.mark.parametrize(("spec", "field", "value", "limit"), SPECS)
def test_a_bad_spec(core, spec, field, value, limit):
    with pytest.raises(RefusedError) as refused:
        core.subscribed(spec)
    error = refused.value
    assert (error.field, str(error.value)) == (f"spec.{field}", value)
    assert limit in error.limit
    assert core.is_unchanged()


def test_what_is_in_order_is_planned(core):
    assert core.published(an_object(), an_object(**area(a_rectangle()))).mutations
    assert core.subscribed(windowed(a_spec(), count=5)).mutations
