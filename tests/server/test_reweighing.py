"""Whoever is evaluated by other weights than before is told all anew, whatever it was evaluated for."""

from __future__ import annotations

import math

import pytest

from engine import EngineOptions
from engine.options import StationaryPolicy
from safe_region.earth.frame import Area, Frame
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity
from safe_region.scoring.idf import IdfTable
from server.core.evaluation_batch import EvaluationBatch
from server.core.matching_service import MatchingService
from server.model import Cause, LiveObject, Place, TopK

FRAME = Frame.of(Area(0.0, 0.0, 1.0, 1.0))
HERE = Place(0.5, 0.5)
TABLE = IdfTable({"rare": 8.0})
WANTED = ("often", "rare")


def item(number, *words):
    point = FRAME.project(*HERE[:2])
    return LiveObject(number, HERE.lon, HERE.lat, point, words, 0, 10_000, b"", "")


def at(handle):
    batch = EvaluationBatch()
    batch.places[handle] = HERE
    return batch


@pytest.fixture(params=[RegionMode.ANCHORED, RegionMode.STATIONARY])
def matching(request):
    """A service whose objects are weighed anew, and the first of two subscriptions."""
    matching = MatchingService(FRAME, EngineOptions(stationary=StationaryPolicy.SKYBAND, buffer_extra=0))
    spec = TopK(WANTED, 2, 0.5, Similarity.TFIDF, region=request.param)
    first, matching.handle = matching.subscribe(spec), matching.subscribe(spec)
    words = [("often", "rare"), ("often",), ("often", "other"), ("rare", "some", "thing")]
    matching.publish([item(number, *some) for number, some in enumerate(words)])
    matching.evaluate(at(first))
    matching.evaluate(at(matching.handle))
    matching.begin_weights(1, TABLE)
    sent = []
    while not sent:
        sent = matching.reweigh(1)
    assert [delta.handle for delta in sent] == [first]
    return matching


def check_told_anew(matching, deltas, cause, *objects):
    (delta,) = [delta for delta in deltas if delta.handle == matching.handle]
    assert delta.snapshot
    assert delta.cause == cause
    assert delta.bound.idf_generation == 1
    weight_m = FRAME.maxdist_m
    held = {entry.item.object_id: entry.r_m for entry in delta.add}
    assert sorted(held) == sorted(objects)
    for object_id, r_m in held.items():
        words = matching.objects.ready([object_id])[object_id].keywords
        assert r_m == pytest.approx(weight_m * (1.0 - cosine(WANTED, words)))


def cosine(some, others):
    common, *norms = (
        sum(TABLE.weight(word) ** 2 for word in words)
        for words in (set(some) & set(others), some, others)
    )
    return common / math.sqrt(math.prod(norms))


def test_devices_that_report(matching):
    check_told_anew(matching, matching.evaluate(at(matching.handle)), Cause.REPORTED, 0, 3)
    matching.check()
    assert matching.reweigh(10) == []
    assert not matching.is_reweighing


def test_devices_that_are_refilled(matching):
    spec = matching.spec(matching.handle)
    deltas = matching.retract([0, 1])
    if spec.region is RegionMode.STATIONARY:
        check_told_anew(matching, deltas, Cause.RETRACTED, 2, 3)
    matching.check()
    sent = [delta for _ in range(2) for delta in matching.reweigh(10)]
    assert bool(sent) is (spec.region is not RegionMode.STATIONARY)
    if sent:
        check_told_anew(matching, sent, Cause.REWEIGHED, 2, 3)
