"""After a warm-up no kernel is compiled or loaded, whatever the engine is asked to do."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numba
import pytest

_COMPILED = """
    import sys

    from numba.core.dispatcher import Dispatcher
    from index.catalogue import (
        DEFAULT_OBJECT_INDEX, DEFAULT_SUBSCRIPTION_INDEX, OBJECT_INDEXES, SUBSCRIPTION_INDEXES
    )
    from server.runtime.warmup import warm_up
    from tests.support.world import PLANE, SIDE, Device, World

    def compiled():
        return {
            f"{module.__name__}.{name}": len(value.signatures)
            for module in list(sys.modules.values())
            if getattr(module, "__name__", "").startswith(("index.", "server.", "safe_region."))
            for name, value in list(vars(module).items())
            if isinstance(value, Dispatcher)
        }

    def tell():
        after = compiled()
        print({name: after[name] for name in after if after[name] != before.get(name)})
"""

_MIX = """
    from tests.engine.test_exactness import KINDS, WEIGHTS, act

    world = World(16)  # with the server's default indexes
    device = Device(world, "device-0", b"0")
    world.devices["device-0"] = device
    assert world.options.object_index is OBJECT_INDEXES[DEFAULT_OBJECT_INDEX]
    warm_up(PLANE, world.options)
    before = compiled()
    assert sum(before.values()) > 20, before
    device.open()
    world.subscribe(device)
    for _ in range(300):
        act(world, world.random.choices(KINDS, WEIGHTS)[0])
    tell()
"""

_MANY = """
    import random

    from engine import EngineOptions
    from server.core.matching_service import Ledger
    from server.model import Cause, LiveObject, Place, TopK

    subscription_index = SUBSCRIPTION_INDEXES["{subscriptions}"]
    options = EngineOptions(
        None, OBJECT_INDEXES["{objects}"], lambda: subscription_index((0.0, 0.0, float(SIDE)))
    )
    warm_up(PLANE, options)
    before = compiled()
    ledger = Ledger(PLANE, options)
    chance = random.Random(3)

    def words():
        return tuple(sorted({{f"w{{int(chance.expovariate(0.03))}}" for _ in range(3)}}))

    def place():
        return Place(PLANE.project(chance.uniform(-SIDE, SIDE), chance.uniform(-SIDE, SIDE)))

    def publish(first, count):
        for begin in range(first, first + count, 500):
            ledger.publish([
                LiveObject(number, point.x_m, point.y_m, point, words(), 0, 1_000 + number, b"", "")
                for number in range(begin, begin + 500)
                for point in [place().point]
            ])

    publish(0, {count})
    handles = range(1, {count} // 10)
    for handle in handles:
        ledger.subscribe(handle, TopK(words(), chance.randint(1, 10), chance.uniform(0.1, 0.9)))
    ledger.anchor({{handle: place() for handle in handles}}, Cause.SUBSCRIBED)
    ledger.anchor({{handle: place() for handle in handles}}, Cause.REPORTED)
    publish({count}, {count})
    ledger.advance(2_000)
    ledger.retract(list(range(2_000, {count})))
    for handle in handles:
        ledger.park(handle)
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
        ("iqf", "sq-tree", 10_000),
        ("iqf-plus", "sq-plus-tree", 10_000),
        ("iq-tree", "sq-plus-tree", 10_000),
    ],
)
def test_nor_when_there_is_much_of_everything(objects, subscriptions, count):
    assert run(_MANY.format(objects=objects, subscriptions=subscriptions, count=count)) == "{}"
