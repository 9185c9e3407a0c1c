"""Text similarity by weights of keywords: tables that come into force while devices are there."""

from __future__ import annotations

import random

import pytest

import nearcast
from nearcast import (
    ChangeReason,
    GeoObject,
    IdfError,
    IdfTable,
    Last,
    RefusedError,
    RegionMode,
    Similarity,
    SubscriptionState,
    TopK,
)
from safe_region import oracle
from tests.sdk.conftest import Place, until
from tests.support.amounts import examples

LON, LAT = 14.5, 35.5
WORDS = ("tea", "coffee", "cake", "wine", "soup")
RARE = IdfTable({"tea": 1.0, "coffee": 4.0, "cake": 2.0}, unknown=0.5)


def spec(*keywords, **fields):
    return TopK(set(keywords), k=5, alpha=0.05, similarity=Similarity.TFIDF, **fields)


def ids(subscription):
    return [match.object.id for match in subscription.results()]


async def in_force(client, table):
    """Set a table and wait until all lists are by it."""
    generation = await client.set_idf(table)
    while (await client.status()).gauges["idf_coming_into_force"]:
        pass
    await client.sync()
    return generation


def expected(frame, subscription, table, objects):
    """The result by definition, where the device is."""
    requests = subscription.spec
    weigh = (table or IdfTable({})).weight
    wanted = oracle.OracleSubscription(
        frozenset(requests.keywords), requests.k, requests.alpha, "tfidf", weigh, oracle.OracleWindow()
    )
    x_m, y_m = frame.project(LON, LAT)
    found = oracle.top_k(wanted, x_m, y_m, frame.maxdist_m, objects, 0)
    return [one.object_id for one in found]


async def publish(client, frame, chance, count):
    """Publish objects with some of the words; return them as the oracle sees them."""
    posts = [
        GeoObject(
            set(chance.sample(WORDS, chance.randint(1, 4))),
            LON + chance.uniform(-0.01, 0.01),
            LAT + chance.uniform(-0.01, 0.01),
            3_600.0,
        )
        for _ in range(count)
    ]
    found = await client.publisher().publish(posts)
    return [
        oracle.OracleObject(one, *frame.project(post.lon, post.lat), frozenset(post.keywords), 0, 2**60)
        for one, post in zip(found, posts, strict=True)
    ]


@pytest.mark.parametrize("seed", range(examples(1)))
async def test_lists_are_right_by_the_table_that_they_name(virtual, seed):
    chance = random.Random(seed)
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        objects = await publish(virtual, device.frame, chance, 60)
        subscriptions = [await device.subscribe(spec(*chance.sample(WORDS, 3))) for _ in range(4)]
        tables = {0: None}
        for round_number in range(4):
            if round_number:
                table = IdfTable({word: chance.choice((0.25, 1.0, 3.0, 9.0)) for word in WORDS[:4]}, 2.0)
                tables[await in_force(virtual, table)] = table
            objects += await publish(virtual, device.frame, chance, 20)
            await virtual.sync()
            for one in subscriptions:
                assert one.state is SubscriptionState.EXACT
                assert one.idf_generation == max(tables)
                assert ids(one) == expected(device.frame, one, tables[one.idf_generation], objects)


async def test_without_a_table_it_is_the_set_cosine(virtual):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        await publish(virtual, device.frame, random.Random(3), 40)
        weighed = await device.subscribe(spec("tea", "coffee", "cake"))
        plain = await device.subscribe(
            TopK({"tea", "coffee", "cake"}, k=5, alpha=0.05, similarity=Similarity.COSINE)
        )
        await virtual.sync()
        scores = [[(match.object.id, match.score) for match in one.results()] for one in (weighed, plain)]
        assert scores[0] == scores[1]
        assert len(scores[0]) == 5


async def test_a_new_table_is_sent_to_devices(virtual):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        far = GeoObject({"coffee", "tea"}, LON + 0.01, LAT, 3_600.0)
        near = GeoObject({"tea", "cake"}, LON, LAT, 3_600.0)
        published = await virtual.publisher().publish([far, near])
        subscription = await device.subscribe(spec("coffee", "tea", "soup"))
        await virtual.sync()
        assert ids(subscription) == published
        changes = aiter(subscription.changes())
        for _ in range(2):
            await anext(changes)
        assert await in_force(virtual, IdfTable({"tea": 20.0, "coffee": 0.01, "cake": 0.01})) == 1
        assert ids(subscription) == published[::-1]
        assert (await anext(changes)).reason is ChangeReason.REWEIGHED
        found = await device.search(spec("coffee", "tea", "soup"))
        assert [match.object.id for match in found] == published[::-1]


async def test_a_table_survives_a_restart(tmp_path):
    place = Place(tmp_path / "store.db", virtual_time=True)
    await place.start()
    async with nearcast.connect(place.target) as client:
        await client.advance_clock(1_000)
        device = await client.attach("d", lon=LON, lat=LAT)
        objects = await publish(client, device.frame, random.Random(5), 40)
        subscription = await device.subscribe(spec("tea", "coffee", window=Last(count=1_000)))
        assert await in_force(client, IdfTable({"soup": 3.0})) == 1
        assert await in_force(client, RARE) == 2
        await place.stop()
        await place.start()
        await until(lambda: subscription.state is SubscriptionState.EXACT)
        objects += await publish(client, device.frame, random.Random(6), 10)
        await client.sync()
        assert subscription.idf_generation == 2
        assert ids(subscription) == expected(device.frame, subscription, RARE, objects)
        assert await in_force(client, IdfTable({})) == 3
        await device.detach()
    await place.stop()


async def test_wrong_tables_are_named(virtual):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        with pytest.raises(RefusedError, match=r"spec\.region is ELLIPSE, must be ANCHORED"):
            await device.subscribe(spec("tea", region=RegionMode.ELLIPSE))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"tea": float("nan")}, r"weights\['tea'\] is nan"),
        ({"tea": -1.0}, r"weights\['tea'\] is -1.0"),
        ({"tea": 0.0}, r"weights\['tea'\] is 0.0"),
        ({"tea": 33.0}, r"weights\['tea'\] is 33.0, must be 1.52588e-05 to 32"),
        ({"tea": "1"}, r"weights\['tea'\] is '1'"),
        ({"Tea": 1.0}, r"weights is of 'Tea', must be of 'tea', normalised"),
        ({"": 1.0}, "weights is of ''"),
    ],
)
def test_a_table_that_cannot_be_used(weights, message):
    with pytest.raises(IdfError, match=message):
        IdfTable(weights)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the table is "),
        ("[]", "the table is of another format"),
        ('{"format": "nearcast-idf", "version": 2, "weights": {}}', "version is 2, must be 1"),
        ('{"format": "nearcast-idf", "version": 1}', "weights is not an object"),
        ('{"format": "nearcast-idf", "version": 1, "weights": {"a": NaN}}', r"weights\['a'\] is nan"),
        ('{"format": "nearcast-idf", "version": 1, "weights": {}, "unknown": -2}', "unknown is -2"),
    ],
)
def test_a_file_that_is_no_table(text, message, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(IdfError, match=message):
        IdfTable.read(path)


def test_a_table_is_written_and_read():
    table = IdfTable.of_documents([{"Tea", "cake"}, {"tea"}, {"tea", "茶"}])
    assert table.weights["tea"] == 1.0
    assert table.weights["cake"] == pytest.approx(1.6931, abs=1e-4)
    assert table.unknown == pytest.approx(2.3863, abs=1e-4)
    assert IdfTable.from_json(table.as_json()) == table
    assert all(weight * 2**16 == round(weight * 2**16) for weight in table.weights.values())
