"""Tenants: each is served as if it were alone, whatever others publish, search for and hold."""

from __future__ import annotations

import random

import pytest

from identity.principal import (
    ANYBODY,
    Principal,
    Role,
    local_name,
    local_names,
    tenant_of,
)
from safe_region.earth.frame import Area, Frame
from safe_region.earth.shapes import Circle
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity
from safe_region.scoring.idf import IdfTable
from server import command as c
from server.clock import Clock
from server.commands.acceptor import Accepted, Acceptor
from server.commands.plan import slices
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.model import Boolean, Clause, NewObject, Place, TopK, Window
from server.session import Outbox, VersionedDelta, Welcome
from tests.support.amounts import seeds

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
WORDS = ("a", "b", "c", "d")
TENANTS = ("", "acme", "b", "other")
ROLES = frozenset({Role.GATEWAY, Role.PUBLISHER})


def test_names_are_qualified_and_local_again():
    acme, default = Principal("x", ROLES, "acme"), Principal("x", ROLES)
    for name in ("", "device", "Ä é", "a/b"):
        assert default.qualified(name) == name
        assert acme.local(acme.qualified(name)) == name == local_name(acme.qualified(name))
        assert (tenant_of(acme.qualified(name)), tenant_of(name)) == ("acme", "")
        assert default.local(acme.qualified(name)) == acme.qualified(name)
        assert not acme.qualified(name).isprintable() or not name.isprintable()
    assert local_names([acme.qualified("a"), "b"]) == ("a", "b")
    assert (ANYBODY.owner, default.owner, acme.owner) == ("", "x", "acme\x1fx")


class Served:
    """A server without sockets for some tenants; the numbers that it gives to objects are its own."""

    def __init__(self, callers):
        self.coordinator = Coordinator(FRAME, clock=Clock(is_virtual=True))
        self.planner, self.acceptor = Planner(self.coordinator), Acceptor(self.coordinator)
        self.callers = callers
        self.outboxes = {name: Outbox(principal=who) for name, who in self.callers.items()}
        self.names = {}  # tenant and number of ours -> object id here
        self.held = {}
        for name in callers:
            self.accept(
                c.Hello(self.outboxes[name], self.qualified(name, "d"), b"n", 0, Place(14.5, 35.5))
            )

    def qualified(self, tenant, name):
        return self.callers[tenant].qualified(name)

    def accept(self, command):
        accepted = Accepted()
        self.acceptor.accept(command, None, accepted)
        self.acceptor.finish(accepted)
        self.listen()

    def apply(self, command):
        plan = self.planner.plan(command)
        batch = EvaluationBatch()
        reply = plan.apply(batch)
        if plan.publication is not None:
            for fresh, replaced in slices([plan.publication], 2):
                self.coordinator.publish(fresh, replaced)
        self.coordinator.evaluate(batch)
        while self.coordinator.reweigh():
            pass
        self.listen()
        return reply

    def listen(self):
        """Take what devices are sent, as they would, with their objects' names for ids."""
        for tenant, outbox in self.outboxes.items():
            for _, event in self.coordinator.router.take(outbox, 1_000):
                if isinstance(event, Welcome):
                    continue
                assert isinstance(event, VersionedDelta), event
                held = self.held.setdefault((tenant, event.subscription_id), {})
                if event.delta.snapshot:
                    held.clear()
                for entry in event.delta.add:
                    assert entry.item.owner == self.callers[tenant].owner
                    held[entry.item.payload] = (local_names(entry.item.keywords), entry.r_m)
                gone = {self.names.get((tenant, one)) for one in event.delta.drop}
                for name in gone:
                    held.pop(name, None)
            outbox.wrote()

    def publish(self, tenant, objects):
        ids = self.apply(c.Publish(tuple(objects), self.callers[tenant]))
        self.names.update(((tenant, one), item.payload) for one, item in zip(ids, objects, strict=True))
        self.listen()
        return ids

    def search(self, tenant, spec, lon, lat):
        accepted = Accepted()
        self.acceptor.accept(c.Search(spec, lon, lat, self.callers[tenant]), None, accepted)
        (request, _), *_ = accepted.searches
        (found,) = self.coordinator.matching.search([request])
        return [(one.item.payload, one.length_m, local_names(one.item.keywords)) for one in found]


def a_spec(chance, kind):
    words = tuple(sorted(chance.sample(WORDS, chance.randint(1, 2))))
    if kind == "boolean":
        others = tuple(sorted(set(WORDS) - set(words)))[:1]
        clauses = (
            Clause(words, others if chance.random() < 0.5 else ()),
            Clause((chance.choice(WORDS),)),
        )
        return Boolean(clauses, Circle(chance.choice((3_000.0, 40_000.0))), True)
    similarity = chance.choice([Similarity.JACCARD, Similarity.COSINE, Similarity.TFIDF])
    region = RegionMode.STATIONARY if kind == "stationary" else RegionMode.ANCHORED
    window = Window(duration_ms=50) if chance.random() < 0.3 else Window()
    return TopK(words, chance.randint(1, 4), chance.choice((0.2, 0.8)), similarity, region, window)


def an_object(chance, number):
    words = tuple(chance.sample(WORDS, chance.randint(1, 3)))
    key = f"k{chance.randrange(6)}" if chance.random() < 0.3 else ""
    place = chance.uniform(14.3, 14.7), chance.uniform(35.3, 35.7)
    return NewObject(*place, words, chance.randint(20, 200), str(number).encode(), key)


KINDS = ("top_k", "boolean", "stationary")


class Pair:
    """A server for all tenants, and one for each; what is done to one is done to the other."""

    def __init__(self, chance):
        self.chance = chance
        self.together = Served({name: Principal("x", ROLES, name) for name in TENANTS})
        # Alone it is of the default tenant, whose names are qualified by nothing.
        self.alone = {name: Served({name: Principal("x", ROLES)}) for name in TENANTS}
        self.all = (self.together, *self.alone.values())

    def of(self, tenant):
        return self.together, self.alone[tenant]

    def publish(self, tenant, number):
        items = [an_object(self.chance, f"{number}-{i}") for i in range(self.chance.randint(1, 3))]
        keys = [one.key for one in items if one.key]
        if len(set(keys)) == len(keys):
            for place in self.of(tenant):
                place.publish(tenant, items)

    def retract(self, tenant, _number):
        """Take back the object whose payload is least."""
        for place in self.of(tenant):
            live = [one for one in place.coordinator.matching.objects if (tenant, one) in place.names]
            if live:
                least = min(live, key=lambda one, place=place: place.names[tenant, one])
                place.apply(c.Retract((least,), place.callers[tenant]))

    def subscribe(self, tenant, number):
        spec, lon = a_spec(self.chance, self.chance.choice(KINDS)), self.chance.uniform(14.3, 14.7)
        for place in self.of(tenant):
            device_id, outbox = place.qualified(tenant, "d"), place.outboxes[tenant]
            place.apply(c.Subscribe(outbox, device_id, 1 + number % 4, spec, Place(lon, 35.5)))

    def advance(self, _tenant, _number):
        now_ms = self.together.coordinator.matching.now_ms + 5
        for place in self.all:
            place.apply(c.AdvanceClock(now_ms))

    def compare(self, tenant):
        spec, lon = a_spec(self.chance, self.chance.choice(KINDS)), self.chance.uniform(14.3, 14.7)
        together, alone = (place.search(tenant, spec, lon, 35.5) for place in self.of(tenant))
        assert together == alone
        for key, held in self.alone[tenant].held.items():
            assert self.together.held.get(key, {}).keys() == held.keys(), key


@pytest.mark.parametrize("part", seeds(6), ids=str)
def test_a_tenant_among_others_is_served_as_if_it_were_alone(part):
    for seed in part:
        chance = random.Random(seed)
        pair = Pair(chance)
        for place in pair.all:
            place.apply(c.SetIdf(IdfTable({"a": 2.0, "b": 0.5}, 3.0)))
        acts = [pair.publish] * 5 + [pair.subscribe] * 2 + [pair.retract, pair.advance]
        for number in range(120):
            if number == 60:  # weights of keywords that are in use
                for place in pair.all:
                    place.apply(c.SetIdf(IdfTable({"a": 0.25, "c": 4.0}, 1.5)))
            tenant = chance.choice(TENANTS)
            chance.choice(acts)(tenant, number)
            pair.compare(tenant)
        pair.together.coordinator.check()
