"""The invariant: when all deltas have arrived, every list equals the oracle's, after any mix of
operations. A failing run names the seed that replays it."""

from __future__ import annotations

import pytest

from server.limits import Limits
from tests.support.world import Device, World

RUNS = 300
STEPS = 200
RUNS_PER_TEST = 10

# How often each thing happens, out of the sum.
MIX = (
    ("move", 40),
    ("publish", 14),
    ("replace", 4),
    ("retract", 6),
    ("advance", 8),
    ("subscribe", 5),
    ("unsubscribe", 2),
    ("disconnect", 3),
    ("resume", 8),
    ("deliver some", 6),
    ("restart", 1),
    ("reinstall", 1),
)
KINDS = [kind for kind, _ in MIX]
WEIGHTS = [weight for _, weight in MIX]


def run(seed: int) -> int:
    """One random run; returns how many lists were compared."""
    limits = Limits(outbox_max=4, retained_max=6) if seed % 3 == 0 else Limits()
    world = World(seed, limits, buffer_extra=(0, 1, None, 3)[seed % 4], is_line=seed % 5 == 0)
    for number in range(3):
        device_id = f"device-{number}"
        world.devices[device_id] = Device(world, device_id, bytes([number]))
        world.devices[device_id].open()
        world.subscribe(world.devices[device_id])
    for _ in range(8):
        world.publish()
    compared = 0
    for step in range(STEPS):
        act(world, world.random.choices(KINDS, WEIGHTS)[0])
        if step % 2 == 0:
            compared += world.audit()
        if step % 25 == 0:
            world.coordinator.check()
    for device in world.devices.values():
        if device.stream is None:
            device.open()
    compared += world.audit()
    world.coordinator.check()
    return compared


def act(world: World, kind: str) -> None:
    device = world.random.choice(list(world.devices.values()))
    actions = {
        "move": lambda: world.move(device),
        "publish": world.publish,
        "replace": lambda: world.publish(key=world.random.choice(("k1", "k2", "k3"))),
        "retract": world.retract,
        "advance": world.advance,
        "subscribe": lambda: world.subscribe(device),
        "unsubscribe": lambda: world.unsubscribe(device),
        "disconnect": device.cut,
        "resume": lambda: device.stream or device.open(),
        "deliver some": lambda: world.deliver(part=True),
        "restart": world.restart,
        "reinstall": lambda: world.reinstall(device),
    }
    actions[kind]()


@pytest.mark.parametrize("first_seed", range(0, RUNS, RUNS_PER_TEST))
def test_every_list_equals_the_oracles(first_seed):
    compared = 0
    for seed in range(first_seed, first_seed + RUNS_PER_TEST):
        try:
            compared += run(seed)
        except Exception as error:
            error.add_note(f"replay with: tests.engine.test_exactness.run(seed={seed})")
            raise
    assert compared >= RUNS_PER_TEST * STEPS // 2, "runs that hardly compare prove little"
