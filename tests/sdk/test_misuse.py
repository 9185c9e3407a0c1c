"""Whatever is given to the SDK that is wrong is refused in words; nothing of the inside is seen."""

from __future__ import annotations

import asyncio
import decimal
import fractions
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import nearcast
from nearcast import (
    Boolean,
    Bounds,
    Circle,
    Clause,
    ClosedError,
    GeoObject,
    IdfTable,
    Last,
    NearcastError,
    Polygon,
    Reason,
    Rectangle,
    RefusedError,
    RegionMode,
    SubscriptionState,
    Tls,
    TopK,
)
from nearcast.v1 import errors_pb2
from nearcast.wire.errors import refusal_from
from tests.sdk.conftest import until

HERE = {"lon": 14.5, "lat": 35.5}
OBJECT = GeoObject({"sushi"}, 14.5, 35.5, 3600.0)
SUSHI = TopK({"sushi"}, k=3, alpha=0.9)
TEA = Boolean({"tea"}, Circle(500.0), moving=True)
HUGE = 10**400
"""A whole number that no float holds."""


@pytest.fixture
async def device(client):
    return await client.attach("d", **HERE)


MOTIONS = [
    {"heading_deg": "90"},
    {"heading_deg": decimal.Decimal(90)},
    {"heading_deg": [1]},
    {"heading_deg": HUGE},
    {"heading_deg": True},
    {"heading_deg": math.nan},
    {"heading_deg": math.inf},
    {"heading_deg": 361},
    {"heading_deg": -360.1},
    {"speed_mps": "12"},
    {"speed_mps": HUGE},
    {"speed_mps": -1},
    {"speed_mps": math.inf},
    {"speed_mps": 10_001},
    {"accuracy_m": HUGE},
    {"accuracy_m": -1},
    {"accuracy_m": "3"},
]


async def test_a_wrong_motion_is_refused_and_the_device_continues(client, device):
    """What was sent before could not be written once it was decided: the device never spoke again."""
    await client.publisher().publish([replace(OBJECT, lon=14.0 + 0.005 * i) for i in range(200)])
    subscription = await device.subscribe(SUSHI)
    for step, motion in enumerate(MOTIONS):
        before, moves = device.geofence(), device.counters.moves
        with pytest.raises(RefusedError) as refused:
            await device.move(lon=14.9, lat=35.5, **motion)
        assert refused.value.field == next(iter(motion))
        assert (device.geofence(), device.counters.moves) == (before, moves)
        assert subscription.state is SubscriptionState.EXACT
        lon = 14.1 + 0.05 * step
        await device.move(lon=lon, lat=35.5)
        await asyncio.wait_for(client.sync(), 20)
        assert subscription.state is SubscriptionState.EXACT
        found = await client.search(SUSHI, lon=lon, lat=35.5)
        assert [one.object.id for one in subscription.results()] == [one.object.id for one in found]


async def test_numbers_of_other_libraries_are_numbers(client, device):
    await client.publisher().publish([replace(OBJECT, lon=14.0 + 0.005 * i) for i in range(200)])
    subscription = await device.subscribe(SUSHI)
    await device.move(
        lon=np.float32(14.9),
        lat=fractions.Fraction(71, 2),
        heading_deg=np.int64(-90),
        speed_mps=np.float64(3),
    )
    await asyncio.wait_for(client.sync(), 20)
    assert subscription.state is SubscriptionState.EXACT
    assert device.counters.reports == 1


JUNK = [
    None,
    "x",
    b"x",
    3,
    -1,
    2**63,
    HUGE,
    1.5,
    math.nan,
    math.inf,
    [],
    [None],
    {"a": 1},
    "\ud800",
    object(),
    (1, 2),
]
"""Given everywhere; some of it is right in some places."""


TRIANGLE = [(14.1, 35.1), (14.2, 35.1), (14.1, 35.2)]


def calls(client, device, junk):
    """Return calls with junk in each place where something may be given."""
    objects = [replace(OBJECT, **{name: junk}) for name in OBJECT.__dataclass_fields__]
    objects += [replace(OBJECT, lon=None, lat=None, area=junk)]
    objects += [
        replace(OBJECT, lon=None, lat=None, area=one)
        for one in (
            Bounds(junk, 35.4, 14.6, 35.6),
            Polygon(junk),
            Polygon([junk]),
            Polygon([(14, 35)], junk),
        )
    ]
    specs = [replace(SUSHI, **{name: junk}) for name in SUSHI.__dataclass_fields__]
    specs += [replace(TEA, **{name: junk}) for name in TEA.__dataclass_fields__]
    ranges = [
        Circle(junk),
        Circle(5.0, junk),
        Circle(5.0, (junk, 35.0)),
        Rectangle(junk, 5.0),
        Bounds(14.1, 35.1, junk, 35.2),
        Polygon(junk),
        Polygon([(14.1, 35.1), junk]),
        Polygon(TRIANGLE, junk),
        Polygon(TRIANGLE, [junk]),
    ]
    specs += [replace(TEA, range=one, moving=False) for one in ranges]
    specs += [replace(SUSHI, window=Last(junk)), replace(SUSHI, window=Last(None, junk)), junk]
    specs += [replace(TEA, expression=[Clause(junk)]), replace(TEA, expression=[Clause({"a"}, junk)])]
    publisher = client.publisher()
    yield from (publisher.publish([one]) for one in objects)
    yield publisher.publish(junk)
    yield publisher.publish([junk])
    yield publisher.retract(junk)
    yield publisher.retract(1, junk)
    for spec in specs:
        yield device.subscribe(spec)
        yield device.subscribe(spec, name="named")
        yield device.search(spec)
        yield client.search(spec, **HERE)
    yield device.subscribe(SUSHI, name=junk)
    yield client.search(SUSHI, lon=junk, lat=35.5)
    yield client.search(SUSHI, lon=14.5, lat=junk)
    yield client.attach(junk, **HERE)
    for name in ("lon", "lat", "accuracy_m", "privacy_radius_m", "prefetch_m"):
        yield client.attach("other", **{**HERE, name: junk})
    for name in ("lon", "lat", "accuracy_m", "heading_deg", "speed_mps"):
        yield device.move(**{**HERE, name: junk})
    yield client.advance_clock(junk)
    yield client.set_idf(junk)
    yield client.inspect(junk)
    yield client.inspect("d", junk)
    yield client.inspect("d", 1, junk)
    yield client.inspect(object_id=junk)


async def test_whatever_is_given_nothing_of_the_inside_is_raised(client, device):
    await client.publisher().publish([OBJECT])
    kept = await device.subscribe(SUSHI)
    for junk in JUNK:
        refused = 0
        for call in calls(client, device, junk):
            try:
                found = await asyncio.wait_for(call, 20)
            except RefusedError as error:
                refused += 1
                assert error.field, error  # noqa: PT017 - both ways are right
                assert error.limit, error  # noqa: PT017
            else:
                if isinstance(found, nearcast.Subscription):
                    await found.unsubscribe()
                elif isinstance(found, nearcast.Device):
                    await found.detach()
        assert refused > 60, junk
    await device.move(**HERE)
    await asyncio.wait_for(client.sync(), 20)
    assert device.subscriptions == [kept]
    assert kept.state is SubscriptionState.EXACT
    found = await client.search(SUSHI, **HERE)
    assert [one.object.id for one in kept.results()] == [one.object.id for one in found]


FIELDS = {"keywords": ["tea"], "lon": 14.5, "lat": 35.5, "ttl_s": 60.0}
"""The fields of an object, which is none."""

WRONG_CALLS = [
    (lambda c, _: c.publisher().publish(None), "objects", ", or an iterable of them"),
    (lambda c, _: c.publisher().publish([OBJECT, None]), "objects[1]", "a GeoObject(keywords, "),
    (lambda c, _: c.publisher().publish("ab"), "objects", "a GeoObject(keywords, "),
    (lambda c, _: c.publisher().publish(b"ab"), "objects", "a GeoObject(keywords, "),
    (lambda c, _: c.publisher().publish(FIELDS), "objects", "a GeoObject(keywords, "),
    (lambda c, _: c.publisher().publish([FIELDS]), "objects[0]", "a GeoObject(keywords, "),
    (lambda c, _: c.publisher().publish(["ab"]), "objects[0]", "a GeoObject(keywords, "),
    (lambda _, d: d.subscribe({"tea"}), "spec", "one of TopK, Boolean"),
    (lambda _, d: d.subscribe(FIELDS), "spec", "one of TopK, Boolean"),
    (lambda c, _: c.publisher().publish(replace(OBJECT, ttl_s=None)), "objects[0].ttl_s",
     "0.001 to 31622400 seconds"),
    (lambda c, _: c.publisher().publish(replace(OBJECT, ttl_s=2 * 366 * 86_400)), "objects[0].ttl_s",
     "0.001 to 31622400 seconds"),
    (lambda c, _: c.publisher().publish(replace(OBJECT, ttl_s=0.0004)), "objects[0].ttl_s",
     "0.001 to 31622400 seconds"),
    (lambda c, _: c.publisher().publish(replace(OBJECT, key="\ud800")), "objects[0].key",
     "a text of 0 to 128 printable characters"),
    (lambda c, _: c.publisher().retract("1"), "ids[0]", "the id of an object"),
    (lambda c, _: c.publisher().retract(1, 2**63), "ids[1]", "the id of an object"),
    (lambda c, _: c.publisher().retract([1, 2]), "ids[0]", "the id of an object"),
    (lambda c, _: c.attach("\ud800", **HERE), "device_id", "a text of 1 to 128 printable characters"),
    (lambda _, d: d.subscribe(TopK({"a"}, k=2**31)), "spec.top_k.k",
     "a whole number, 1 to the k_max of the server"),
    (lambda _, d: d.subscribe(TopK({"a"}, k=1000)), "spec.top_k.k", "1 to 100"),
    (lambda _, d: d.subscribe(TopK({"a"}, region=3)), "spec.region", "a RegionMode: ANCHORED"),
    (lambda _, d: d.subscribe(TopK({"a"}, window="5m")), "spec.window", "a Last, or None"),
    (lambda _, d: d.subscribe(TopK({"a"}, window=Last(seconds=1e18))), "spec.window.seconds",
     "0.001 to 31622400 seconds"),
    (lambda _, d: d.subscribe(replace(TEA, dwell_s=0.0004)), "spec.boolean.dwell_s",
     "0, or 0.001 to 86400 seconds"),
    (lambda _, d: d.subscribe(replace(TEA, region=RegionMode.NEAREST, window=Last(seconds=5))),
     "spec.region", "ANCHORED, since there is a window"),
    (lambda _, d: d.subscribe(TopK({"a"}, region=RegionMode.ELLIPSE, window=Last(seconds=5))),
     "spec.region", "ANCHORED or STATIONARY, since there is a window"),
    (lambda _, d: d.subscribe(Boolean({"a"}, Polygon(TRIANGLE, None))), "spec.boolean.polygon.holes",
     "rings, or none"),
    (lambda c, _: c.set_idf({"a": 1.0}), "table", "an IdfTable"),
    (lambda c, _: c.advance_clock("1"), "time_ms", "a whole number of milliseconds"),
]  # fmt: skip


async def test_field_and_limit_are_those_of_the_app(client, device):
    for act, field, limit in WRONG_CALLS:
        with pytest.raises(RefusedError) as refused:
            await act(client, device)
        assert refused.value.field == field
        assert limit in refused.value.limit
        assert str(refused.value).startswith(f"{field} is ")


async def test_a_dict_in_place_of_an_object_is_shown(client):
    with pytest.raises(RefusedError) as refused:
        await client.publisher().publish(FIELDS)
    shown = str(refused.value)
    assert shown.startswith("objects is {'keywords': ['tea'], 'lon': 14.5")
    assert "must be a GeoObject(keywords, lon=..., lat=..., ttl_s=...)" in shown


async def test_an_object_alone_is_a_list_of_one(client):
    (only,) = await client.publisher().publish(OBJECT)
    assert [one.object.id for one in await client.search(SUSHI, **HERE)] == [only]
    more = await client.publisher().publish(replace(OBJECT, lon=14.5 + i / 1000) for i in range(2))
    assert more == [only + 1, only + 2]


async def test_spellings_of_one_keyword_count_as_one(client, device):
    spellings = {f"{' ' * (i % 20)}{word}" for i in range(200) for word in ("Tea", "tea", "TEA", "tEA")}
    assert len(spellings) == 80
    (only,) = await client.publisher().publish(GeoObject(spellings, 14.5, 35.5, 60.0))
    found = (await device.subscribe(TopK(spellings))).results()
    assert [(one.object.id, one.object.keywords) for one in found] == [(only, {"tea"})]
    with pytest.raises(RefusedError, match=r"spec.top_k.keywords is 17 keywords, must be 1 to 16"):
        await device.subscribe(TopK({f"{blank}{i}" for i in range(17) for blank in ("", " ")}))


@pytest.mark.parametrize(
    ("field", "value", "limit", "shown"),
    [
        ("objects[3].ttl_ms", "63244800000", "1 to 31622400000",
         "objects[3].ttl_s is 63244800, must be 0.001 to 31622400 seconds"),
        ("spec.boolean.dwell_ms", "86400001", "0 to 86400000",
         "spec.boolean.dwell_s is 86400.001, must be 0 to 86400 seconds"),
        ("spec.window.duration_ms", "-5", "at least 1",
         "spec.window.seconds is -0.005, must be at least 0.001 seconds"),
        ("spec.top_k.k", "1000", "1 to 100", "spec.top_k.k is 1000, must be 1 to 100"),
    ],
)  # fmt: skip
def test_durations_in_refusals_are_in_seconds(field, value, limit, shown):
    message = f"{field} is {value}, must be {limit}"
    error = refusal_from(
        errors_pb2.Error(reason=1, field=field, value=value, limit=limit, message=message)
    )
    assert str(error) == shown
    assert error.field == shown.split(" is ")[0]


def test_a_reason_prints_as_its_name():
    assert [str(Reason.DEVICE_IN_USE), f"{Reason.DEVICE_IN_USE}"] == ["DEVICE_IN_USE"] * 2
    assert "%s" % Reason.SILENT == "SILENT"  # noqa: UP031 - as logs write it
    assert (Reason.DEVICE_IN_USE, int(Reason.DEVICE_IN_USE), f"{Reason.DEVICE_IN_USE:d}") == (7, 7, "7")
    assert json.dumps({"reason": Reason.DEVICE_IN_USE}) == '{"reason": 7}'
    error = RefusedError(Reason.DEVICE_IN_USE, "device_id", "'d'", "another")
    assert repr(error) == "RefusedError(DEVICE_IN_USE: device_id is 'd', must be another)"


async def test_after_close_there_is_one_error_for_everything(place, caplog):
    async with nearcast.connect(place.target) as client:
        publisher = client.publisher()
        (known,) = await publisher.publish(OBJECT)
        device = await client.attach("d", **HERE)
        subscription = await device.subscribe(SUSHI)
        async with client.fleet() as fleet:
            other = await fleet.attach("e", **HERE)
    calls = [
        lambda: client.attach("f", **HERE),
        lambda: fleet.attach("f", **HERE),
        lambda: client.search(SUSHI, **HERE),
        client.sync,
        client.status,
        client.network_changed,
        lambda: client.advance_clock(1),
        lambda: client.set_idf(IdfTable({"a": 1.0})),
        lambda: client.inspect("d"),
        client.fleet().__aenter__,
        lambda: publisher.publish(OBJECT),
        lambda: publisher.retract(known),
        *(lambda one=one: one.subscribe(SUSHI) for one in (device, other)),
        *(lambda one=one: one.subscribe(SUSHI, name="lunch") for one in (device, other)),
        *(lambda one=one: one.move(**HERE) for one in (device, other)),
        *(lambda one=one: one.search(SUSHI) for one in (device, other)),
    ]
    for call in calls:
        with pytest.raises(ClosedError, match=r"closed|detached"):
            await call()
    for call in (client.publisher, device.geofence, subscription.geofence):
        with pytest.raises(ClosedError):
            call()
    await client.close()
    await publisher.close()
    await device.detach()
    await subscription.unsubscribe()
    assert subscription.state is SubscriptionState.ENDED
    assert len(subscription.results()) == 1, "it shows what it showed"
    assert not [one for one in caplog.records if one.levelname in {"ERROR", "CRITICAL"}]


async def test_requests_in_progress_when_the_client_closes(place):
    async with nearcast.connect(place.target) as client:
        await client.status()
        device = await client.attach("d", **HERE)
        tasks = [
            asyncio.create_task(one)
            for one in (client.search(SUSHI, **HERE), client.sync(), client.publisher().publish(OBJECT),
                        device.subscribe(SUSHI))
        ]  # fmt: skip
        await asyncio.sleep(0)
    for found in await asyncio.gather(*tasks, return_exceptions=True):
        assert not isinstance(found, BaseException) or isinstance(found, NearcastError), repr(found)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"root_certificates": "chain.pem"}, "root_certificates"),
        ({"root_certificates": b"chain.pem"}, "root_certificates"),
        ({"certificate": "x", "key": b"-----BEGIN X"}, "certificate"),
        ({"certificate": b"-----BEGIN X", "key": "secret"}, "key"),
        ({"certificate": b"-----BEGIN X"}, "key"),
        ({"key": b"-----BEGIN X"}, "certificate"),
        ({"server_name": b"localhost"}, "server_name"),
    ],
)
def test_certificates_are_bytes(fields, field):
    with pytest.raises(RefusedError, match=rf"^tls\.{field} is ") as refused:
        Tls(**fields)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"target": 7433}, "target"),
        ({"target": ""}, "target"),
        ({"tls": True}, "tls"),
        ({"token": 7}, "token"),
        ({"token": "geheim\nzeile"}, "token"),
        ({"target": "http://localhost:7433"}, "target"),
        ({"target": "localhost:x"}, "target"),
        ({"token": "secret é"}, "token"),
        ({"keepalive_s": "30"}, "keepalive_s"),
        ({"keepalive_s": 0}, "keepalive_s"),
        ({"keepalive_s": math.inf}, "keepalive_s"),
        ({"keepalive_s": HUGE}, "keepalive_s"),
    ],
)
async def test_a_connection_that_cannot_be_is_refused(options, field):
    with pytest.raises(RefusedError, match=f"^{field} is ") as refused:
        async with nearcast.connect(**{"target": "localhost:1", **options}):
            pass
    assert "secret" not in str(refused.value)
    assert "geheim" not in str(refused.value)


def test_the_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+.*|unknown", nearcast.__version__)
    with pytest.raises(AttributeError, match="no attribute 'versoin'"):
        _ = nearcast.versoin  # codespell:ignore versoin


def test_the_version_of_a_missing_installation(monkeypatch):
    from nearcast import version  # noqa: PLC0415

    def absent(_name):
        raise version.PackageNotFoundError

    monkeypatch.setattr(version, "version", absent)
    assert nearcast.__version__ == "unknown"


async def test_reordered_is_yielded_for_scored_results_or_on_request(client, device):
    await client.publisher().publish(
        [replace(OBJECT, lon=lon, keywords={"tea"}) for lon in (14.5, 14.51)]
    )
    wide = Boolean({"tea"}, Circle(5_000.0), moving=True)
    subscriptions = await device.subscribe(TopK({"tea"}, k=2)), await device.subscribe(wide)
    seen = {}

    async def listen(number, requests):
        found = seen[number, requests] = []
        async for change in subscriptions[number].changes(reordered=requests):
            found.append(change.kind.value)  # noqa: PERF401 - it never ends

    tasks = [
        asyncio.create_task(listen(i, requests)) for i in range(2) for requests in (None, True, False)
    ]
    await until(lambda: len(seen) == 6 and all(len(one) == 2 for one in seen.values()))
    await device.move(lon=14.51, lat=35.5)
    sent = [(0, None), (0, True), (1, True)]
    await until(lambda: all(len(seen[one]) == 4 for one in sent))
    await client.publisher().publish(replace(OBJECT, lon=14.52, keywords={"tea"}))
    await client.sync()
    await until(lambda: all(seen[1, requests][-1] == "entered" for requests in (None, True, False)))
    for key, kinds in seen.items():
        assert kinds.count("reordered") == 2 * (key in sent), key
    for task in tasks:
        task.cancel()
