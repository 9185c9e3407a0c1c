"""The mapping of messages is the same in both directions, for SDK and server."""

from __future__ import annotations

import pytest

from nearcast import Boolean, Clause, GeoObject, Last, Reason, RefusedError, TopK, canonical
from nearcast.protocol.converters import new_object
from nearcast.protocol.specs import spec_from as spec_for_app
from nearcast.protocol.specs import spec_message as message_of_app
from nearcast.v1 import device_service_pb2, errors_pb2, geometry_pb2, objects_pb2, subscriptions_pb2
from nearcast.wire import errors, geometry, objects, specs
from safe_region.earth.frame import Area, Frame, Point
from safe_region.earth.shapes import Bounds, Circle, Polygon, Rectangle
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity
from server.core.matching_service import Ranked
from server.transport import converters
from server.transport.specs import spec_from as spec_for_server

TRIANGLE = ((14.1, 35.1), (14.2, 35.1), (14.1, 35.2))
HOLE = ((14.11, 35.11), (14.12, 35.11), (14.11, 35.12))
ANY_OF = (canonical.Clause(("books",), ("tea",)), canonical.Clause(("sushi", "tea")))
HERE = (14.5, 35.5)
TOP_K = canonical.TopK(("sushi", "tea"), 5, 0.4)
SPECS = [
    TOP_K,
    canonical.TopK(("tea",), 1, 0.5, Similarity.TFIDF, RegionMode.STATIONARY, distance_scale_m=250.0),
    canonical.TopK(("tea",), 1, 0.5, Similarity.DICE, RegionMode.ELLIPSE),
    canonical.TopK(("tea",), 1, 0.5, window=canonical.Window(duration_ms=2_007)),
    canonical.TopK(("tea",), 1, 0.5, window=canonical.Window(count=100)),
    canonical.Boolean(ANY_OF, Circle(100.0, (14.5, 35.5)), is_moving=False, dwell_ms=1_500),
    canonical.Boolean(ANY_OF, Circle(100.0), is_moving=True, region=RegionMode.NEAREST),
    canonical.Boolean(ANY_OF, Bounds(14.1, 35.1, 14.2, 35.3), is_moving=False),
    canonical.Boolean(ANY_OF, Rectangle(100.0, 50.0), is_moving=True),
    canonical.Boolean(ANY_OF, Polygon(TRIANGLE, (HOLE,)), is_moving=False),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_spec_comes_back_from_its_message(spec):
    message = specs.spec_message(spec)
    assert specs.spec_from(message) == spec
    assert spec_for_server(message) == spec


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_spec_of_an_app_has_the_message_of_its_canonical_form(spec):
    message = specs.spec_message(spec)
    assert message_of_app(spec_for_app(message)) == message


def test_seconds_and_texts_of_apps_become_canonical():
    app = TopK(["Tea", "sushi"], k=3, window=Last(seconds=2.007))
    assert specs.spec_from(message_of_app(app)) == canonical.TopK(
        ("Tea", "sushi"), 3, 0.5, window=canonical.Window(duration_ms=2_007)
    )
    app = Boolean("tea AND NOT books", Circle(5.0, (14.5, 35.5)), dwell_s=1.5)
    found = spec_for_app(message_of_app(app))
    assert found == app
    assert found.expression == (Clause(frozenset({"tea"}), frozenset({"books"})),)


@pytest.mark.parametrize(
    "message",
    [
        subscriptions_pb2.SubscriptionSpec(),
        subscriptions_pb2.SubscriptionSpec(boolean=subscriptions_pb2.Boolean()),
        subscriptions_pb2.SubscriptionSpec(top_k=subscriptions_pb2.TopK(similarity=9)),
        subscriptions_pb2.SubscriptionSpec(top_k=subscriptions_pb2.TopK(), region=9),
        subscriptions_pb2.SubscriptionSpec(
            top_k=subscriptions_pb2.TopK(), window=subscriptions_pb2.Window()
        ),
    ],
    ids=str,
)
def test_a_choice_that_is_unknown_is_none(message):
    assert specs.spec_from(message) is None
    with pytest.raises(RefusedError) as refused:
        spec_for_server(message)
    assert refused.value.reason is Reason.INVALID_FIELD


@pytest.mark.parametrize("area", [None, Bounds(14.1, 35.1, 14.2, 35.3), Polygon(TRIANGLE)], ids=str)
def test_an_object_comes_back_from_its_message(area):
    place = (14.5, 35.5) if area is None else (0.0, 0.0)
    new = canonical.NewObject(*place, ("sushi", "tea"), 5_000, b"20 %", "key", area)
    message = objects.new_object_message(new)
    assert objects.new_object_from(message) == new
    lon, lat = (14.5, 35.5) if area is None else (None, None)
    app = GeoObject({"tea", "sushi"}, lon, lat, 5.0, b"20 %", "key", area)
    assert new_object(app, "objects[0]") == new
    live = canonical.LiveObject(7, 14.5, 35.5, Point(1.0, 2.0), new.keywords, 1, 2, b"p", "key", area)
    found = objects.object_from(objects.object_message(live, live.keywords, live.key))
    assert (found.id, found.lon, found.lat, found.area) == (7, 14.5, 35.5, area)
    assert (found.keywords, found.created_ms, found.expiry_ms) == ({"sushi", "tea"}, 1, 2)


def test_the_rest_comes_back_from_its_message():
    frame = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
    assert geometry.frame_from(geometry.frame_message(frame)) == frame
    assert geometry.position_from(geometry.position_message((14.5, 35.5))) == (14.5, 35.5)
    assert geometry.plane_point(geometry_pb2.Point(x_m=1.0, y_m=2.0)) == Point(1.0, 2.0)
    assert geometry.area_from(objects_pb2.ObjectArea()) is None
    error = RefusedError(Reason.TOO_MANY, "objects", 5, "at most 3", retry_after_ms=9)
    message = errors.error_message(error)
    assert (message.code, message.message) == (8, "objects is 5, must be at most 3")
    found = errors.refusal_from(message)
    assert (found.reason, found.field, found.value, found.limit) == (
        Reason.TOO_MANY,
        "objects",
        "5",
        "at most 3",
    )
    assert (str(found), found.retry_after_ms) == (str(error), 9)


def test_durations_of_refusals_are_in_seconds_for_apps():
    message = errors_pb2.Error(
        reason="ERROR_REASON_INVALID_FIELD", field="objects[0].ttl_ms", value="0", limit="1 to 2000"
    )
    found = errors.refusal_from(message)
    assert str(found) == "objects[0].ttl_s is 0, must be 0.001 to 2 seconds"


@pytest.mark.parametrize("text", ["k", "\N{GRINNING FACE}" * 64])
@pytest.mark.parametrize("area", [None, Bounds(14.1, 35.1, 14.2, 35.3), Polygon(TRIANGLE * 20)], ids=str)
def test_a_search_response_is_no_larger_than_it_was_expected_to_be(text, area):
    """All numbers are as long as they can be."""
    keywords = tuple(f"{text}{i}" for i in range(64))
    item = canonical.LiveObject(
        2**62, 14.123, 35.123, Point(1.1, 2.2), keywords, 2**62, 2**62, bytes(16_384), text * 2, area
    )
    ranked = [Ranked(item, 1.1, 1.1)] * 3
    frame = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
    size = sum(build().ByteSize() for build in converters.search_parts(TOP_K, ranked, frame, HERE, 2**62))
    expected = converters.search_bytes_max(ranked)
    assert 0.5 * expected < size <= expected


@pytest.mark.parametrize("count", [0, 1, 1_000])
def test_the_parts_of_a_search_response_are_small_and_make_one_message(count):
    frame = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
    found = [
        Ranked(canonical.LiveObject(i, 14.1, 35.1, Point(1.0, 2.0), ("k",), 0, 1, b"", ""), 1.0, 0.0)
        for i in range(1, count + 1)
    ]
    parts = [build() for build in converters.search_parts(TOP_K, found, frame, HERE, 7)]
    assert max(len(one.matches) for one in parts) <= 64
    data = b"".join(one.SerializeToString() for one in parts)
    whole = device_service_pb2.SearchResponse.FromString(data)
    assert whole.time_ms == 7
    assert [one.object.id for one in whole.matches] == list(range(1, count + 1))
