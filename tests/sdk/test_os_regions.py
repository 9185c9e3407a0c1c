"""A phone that sleeps within the circles of `os_regions` enters no place without waking its app."""

from __future__ import annotations

import math

import pytest

from nearcast import Boolean, Circle, GeoObject, RefusedError, TopK
from nearcast.geofence import OsRegion, ground_extent_m
from nearcast.protocol.clock import Clock
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.location import Location
from nearcast.protocol.specs import spec_from
from nearcast.v1 import device_service_pb2, subscriptions_pb2
from safe_region.earth.frame import Area, Frame
from safe_region.earth.ground import ground_distance_m
from safe_region.geometry.areas import area_distance, area_extent
from safe_region.geometry.shapes import PolygonShape, RectangleShape
from tests.support.amounts import examples
from tests.support.geodesics import step_from
from tests.vectors.draws import Draws
from tests.vectors.frames import CITY, COUNTRY
from tests.vectors.notation import message_json, read_message
from tests.vectors.os_region_cases import TOWN
from tests.vectors.sessions import messages
from tests.vectors.sessions.server import Server

WAKE_M = 400.0
STEP_M = 40.0
STEPS = 1500


class Phone:
    """A device on a walk. Its app sleeps until the phone crosses an edge of its circles."""

    def __init__(self, seed, frame, limit, north_m=0.0):
        self.draws = Draws(seed)
        self.server = Server(frame, self.draws)
        self.frame = frame
        self.limit = limit
        self.x_m, self.y_m, self.heading = 0.0, north_m, 0.0
        clock = Clock(lambda: 0)
        location = Location(*self.place())
        self.device = DeviceSession("d", b"nonce", clock, self.receive, location)
        for _ in range(150):
            self.publish()
        self.device.connect()
        self.deliver()
        self.subscription = self.device.subscribe(
            spec_from(read_message(TOWN, subscriptions_pb2.SubscriptionSpec))
        )
        self.wake()

    def place(self):
        return self.frame.unproject(self.x_m, self.y_m)

    def receive(self, request):
        self.server.receive(message_json(request))

    def deliver(self):
        while self.server.stream:
            message = self.server.stream.popleft()
            self.device.receive(read_message(message, device_service_pb2.AttachResponse))

    def publish(self):
        offsets_m = self.draws.between(-1e4, 1e4), self.draws.between(-1e4, 1e4)
        lon, lat = self.frame.unproject(self.x_m + offsets_m[0], self.y_m + offsets_m[1])
        self.server.publish(lon, lat, 0.0, self.draws.whole(20_000, 2_000_000))

    def wake(self):
        """Take a fix, and compute the circles from what the server then sends."""
        self.deliver()
        self.device.move(*self.place())
        self.deliver()
        self.regions = self.subscription.os_regions(WAKE_M, self.limit)
        self.known = set(self.server.objects)
        self.inside = self.around()

    def step(self):
        self.heading += self.draws.between(-0.4, 0.4)
        self.x_m += STEP_M * math.cos(self.heading)
        self.y_m += STEP_M * math.sin(self.heading)
        self.server.pass_time(1000)

    def around(self):
        """Return the objects about the phone: what its app is to wake for, from the definition."""
        return {
            number
            for number, one in self.server.objects.items()
            if number in self.known and ground_distance_m(*self.place(), one.lon, one.lat) <= WAKE_M
        }

    def has_crossed(self):
        """Return whether the system wakes the app: it knows the circles alone."""
        refresh = self.regions.refresh
        has_left = refresh is not None and not self.is_in(refresh)
        now_ms = self.server.now_ms
        live = [one for one in self.regions.places if one.until_ms > now_ms]
        return has_left or any(self.is_in(one) and one.object.id not in self.inside for one in live)

    def is_in(self, region: OsRegion):
        return ground_distance_m(*self.place(), region.lon, region.lat) <= region.radius_m


def walk(phone):
    """Return the entries while the app sleeps, those that do not wake it, and how often it wakes."""
    entries = missed = wakes = 0
    for _ in range(STEPS):
        phone.step()
        if phone.draws.random() < 0.05:
            phone.publish()
        around = phone.around()
        entered = len(around - phone.inside)
        phone.inside &= around
        if phone.regions.must_stay_awake:
            phone.wake()
            continue
        entries += entered
        if phone.has_crossed():
            wakes += 1
            phone.wake()
        else:
            missed += entered
    return entries, missed, wakes


@pytest.mark.parametrize("limit", [2, 19])
@pytest.mark.parametrize(
    ("frame", "north_m"), [(CITY, 0.0), (COUNTRY, -4e5), (COUNTRY, 4e5)], ids=["city", "south", "north"]
)
def test_no_entry_is_missed(frame, north_m, limit):
    count = examples(3)
    walks = [walk(Phone(seed, frame, limit, north_m)) for seed in range(count)]
    entries, missed, wakes = map(sum, zip(*walks, strict=True))
    assert missed == 0
    assert entries > 4 * count, "the phone comes by some places"
    assert wakes < 100 * count, "and sleeps in between"


@pytest.mark.parametrize("seed", range(10))
def test_within_the_refresh_circle_no_place_is_near(seed):
    """Also not at its edge, in the direction of the nearest object without a circle."""
    tried = 0
    for limit in (1, 3, 40):
        phone = Phone(seed, CITY, limit)
        refresh = phone.regions.refresh
        if refresh is None:
            continue
        circled = {one.object.id for one in phone.regions.places}
        others = [one for one in phone.server.objects.values() if one.number not in circled]
        for one in others:
            x_m, y_m = CITY.project(one.lon, one.lat)
            azimuth = math.atan2(x_m - phone.x_m, y_m - phone.y_m)
            edge = step_from(refresh.lon, refresh.lat, azimuth, refresh.radius_m)
            assert ground_distance_m(*edge, one.lon, one.lat) > WAKE_M
            tried += 1
    assert tried > 20


@pytest.mark.parametrize("seed", range(20))
def test_the_circle_of_an_area_contains_what_is_near_it(seed):
    draws = Draws(seed)
    south = draws.one_of((0.0, -1.0, draws.between(-75.0, 75.0)))
    frame = Frame.of(Area(14.0, south, 15.0, south + draws.between(0.1, 2.0)))
    x_m, y_m = draws.between(-4e4, 4e4), draws.between(-4e3, 4e3)
    size_m = 10.0 ** draws.between(1.0, 4.5)
    corners = [
        (x_m - size_m, y_m - draws.between(0.0, size_m)),
        (x_m + draws.between(0.0, size_m), y_m - size_m),
        (x_m, y_m + size_m),
    ]
    for area in (
        PolygonShape((tuple(corners),)),
        RectangleShape(x_m - size_m, y_m - 10.0, x_m + 2.0 * size_m, y_m + size_m),
    ):
        lon, lat = frame.unproject(x_m, y_m)
        plane_m = area_extent(area, x_m, y_m)
        radius_m = WAKE_M + ground_extent_m(frame, lat, plane_m)
        assert radius_m < WAKE_M + 1.2 * plane_m, "not larger than need be"
        for _ in range(60):
            there = x_m + draws.between(-2.0, 3.0) * size_m, y_m + draws.between(-2.0, 2.0) * size_m
            if area_distance(area, *there) > 0.0:
                continue
            edge = step_from(*frame.unproject(*there), draws.between(0.0, 2.0 * math.pi), WAKE_M)
            assert ground_distance_m(*edge, lon, lat) <= radius_m


def test_objects_with_areas_are_as_near_as_their_areas():
    """No place of an area without a circle is near the refresh circle, either."""
    corners = {"lon_min": 14.52, "lat_min": 35.49, "lon_max": 14.6, "lat_max": 35.51}
    add = [messages.entry(1, 14.59, area={"rectangle": corners}), messages.entry(2, 14.51)]
    device = DeviceSession("d", b"nonce", Clock(lambda: 0), lambda _: None, Location(*messages.HERE))
    subscription = device.subscribe(spec_from(read_message(TOWN, subscriptions_pb2.SubscriptionSpec)))
    steps = [messages.welcome(), messages.snapshot(1, add=add, slack=messages.slack(4000.0))]
    device.connect()
    for step in steps:
        device.receive(read_message(step["message"], device_service_pb2.AttachResponse))
    regions = subscription.os_regions(WAKE_M, 1)
    assert [one.object.id for one in regions.places] == [2]
    edge_m = ground_distance_m(*messages.HERE, corners["lon_min"], messages.HERE[1])
    assert edge_m - WAKE_M > regions.refresh.radius_m > 0.98 * edge_m - WAKE_M


async def test_through_a_real_server(client):
    await client.publisher().publish(
        [GeoObject({"tea"}, 14.5 + 0.01 * i, 35.5, ttl_s=3600.0, key=f"{i}") for i in range(1, 30)]
    )
    device = await client.attach("d", lon=14.5, lat=35.5)
    near = await device.subscribe(Boolean("tea", Circle(5000.0), moving=True))
    regions = near.os_regions(150.0, 2)
    assert [one.object.key for one in regions.places] == ["1", "2"]
    assert [one.until_ms for one in regions.places] == [one.object.expiry_ms for one in regions.places]
    assert not regions.must_stay_awake
    third_m = ground_distance_m(14.5, 35.5, 14.53, 35.5)
    assert regions.refresh.radius_m == pytest.approx(third_m - 150.0, rel=0.01)
    await device.move(14.58, 35.5)
    await near.exact_results()
    assert [one.object.key for one in near.os_regions(150.0, 1).places] == ["8"]
    other = await device.subscribe(TopK({"tea"}))
    with pytest.raises(RefusedError, match="spec is TopK"):
        other.os_regions(150.0)
    for radius_m in (0.0, -1.0, math.nan, 5000.1, "1", None, True):
        with pytest.raises(RefusedError, match=r"at most the radius of the range \(5000\)"):
            near.os_regions(radius_m)
    for limit in (0, 100, 1.0, True, "1", None):
        with pytest.raises(RefusedError, match="limit is"):
            near.os_regions(150.0, limit)
    await near.unsubscribe()
    with pytest.raises(type(near.error)):
        near.os_regions(150.0)
