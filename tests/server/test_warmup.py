"""After a warm-up no kernel is compiled or loaded, whatever the engine is asked to do."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numba
import pytest

pytestmark = pytest.mark.processes

_COMPILED = """
    import asyncio
    import sys

    from numba.core.dispatcher import Dispatcher
    from index.catalogue import (
        DEFAULT_OBJECT_INDEX, DEFAULT_SUBSCRIPTION_INDEX, OBJECT_INDEXES, SUBSCRIPTION_INDEXES
    )
    from server.runtime.warmup import warm_up
    from tests.support.draws import PLANE, SIDE
    from tests.support.world import options_of

    def compiled():
        return {
            f"{module.__name__}.{name}": len(value.signatures)
            for module in list(sys.modules.values())
            if getattr(module, "__name__", "").startswith(("engine.", "index.", "safe_region."))
            for name, value in list(vars(module).items())
            if isinstance(value, Dispatcher)
        }

    def tell():
        after = compiled()
        print({name: after[name] for name in after if after[name] != before.get(name)})
"""

_MIX = """
    from tests.engine.test_exactness import crowd, few
    from tests.support.local_server import LocalServer

    LocalServer.check = lambda _self: None  # it calls kernels that are else called by kernels only
    options = options_of(16)  # with the server's default indexes
    assert options.object_index is OBJECT_INDEXES[DEFAULT_OBJECT_INDEX]
    warm_up(PLANE, options)
    before = compiled()
    assert sum(before.values()) > 20, before
    asyncio.run(few(16))
    asyncio.run(crowd(16))
    tell()
"""

_MANY = """
    import random

    from engine import EngineOptions
    from index.square import Square
    from safe_region.earth.frame import Area, Frame
    from server.core.evaluation_batch import EvaluationBatch
    from server.core.matching_service import MatchingService, SearchRequest
    from server.model import Cause, LiveObject, Place, TopK

    SIDE = 12
    PLANE = Frame(Area(-SIDE, -SIDE, SIDE, SIDE), 0.0, 0.0, 1.0, 1.0, 34.0)
    subscription_index = SUBSCRIPTION_INDEXES["{subscriptions}"]
    options = EngineOptions(
        None, OBJECT_INDEXES["{objects}"], lambda: subscription_index(Square(0.0, 0.0, float(SIDE)))
    )
    warm_up(PLANE, options)
    before = compiled()
    matching = MatchingService(PLANE, options)
    chance = random.Random(3)

    def words():
        return tuple(sorted({{f"w{{int(chance.expovariate(0.03))}}" for _ in range(3)}}))

    def place():
        return Place(chance.uniform(-SIDE, SIDE), chance.uniform(-SIDE, SIDE))

    def batch():
        found = EvaluationBatch()
        found.places.update({{handle: place() for handle in handles}})
        return found

    def publish(first, count):
        for begin in range(first, first + count, 500):
            matching.publish([
                LiveObject(
                    number, lon, lat, PLANE.project(lon, lat), words(), 0, 1_000 + number, b"", ""
                )
                for number in range(begin, begin + 500)
                for lon, lat, *_ in [place()]
            ])

    publish(0, {count})
    specs = [
        TopK(words(), chance.randint(1, 10), chance.uniform(0.1, 0.9)) for _ in range({count} // 10)
    ]
    handles = [matching.subscribe(spec) for spec in specs]
    matching.evaluate(batch())
    moved = batch()
    matching.evaluate(moved, matching.retrieve(moved))
    matching.search([SearchRequest(spec, *place()[:2]) for spec in specs])
    publish({count}, {count})
    matching.advance(2_000)
    matching.retract(list(range(2_000, {count})))
    matching.snapshot(handles[0], Cause.RESUMED)
    matching.park(handles)
    for handle in handles:
        matching.unsubscribe(handle)
    tell()
"""


def run(program: str) -> str:
    program = textwrap.dedent(_COMPILED) + textwrap.dedent(program)
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=600
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


needs_jit = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="nothing is compiled without the JIT"
)


@needs_jit
def test_nothing_is_compiled_after_the_warm_up():
    assert run(_MIX) == "{}"


@needs_jit
@pytest.mark.parametrize(
    ("objects", "subscriptions", "count"),
    [
        ("naive", "naive", 3_000),
        ("iqf", "sq-tree", 4_000),
        ("iqf-plus", "sq-plus-tree", 4_000),
        ("iq-tree", "igpt", 4_000),
        ("ir-tree", "ipt", 4_000),
        ("naive", "ciq", 4_000),
    ],
)
def test_nor_when_there_is_much_of_everything(objects, subscriptions, count):
    assert run(_MANY.format(objects=objects, subscriptions=subscriptions, count=count)) == "{}"
