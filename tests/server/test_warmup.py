"""After a warm-up no kernel is compiled or loaded, whatever the engine is asked to do."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numba
import pytest

_PROGRAM = """
    import sys

    from numba.core.dispatcher import Dispatcher
    from index.catalogue import DEFAULT_OBJECT_INDEX, OBJECT_INDEXES
    from server.warmup import warm_up
    from tests.engine.test_exactness import KINDS, WEIGHTS, act
    from tests.support.world import PLANE, Device, World

    def compiled():
        return {
            f"{module.__name__}.{name}": len(value.signatures)
            for module in list(sys.modules.values())
            if getattr(module, "__name__", "").startswith(("index.", "server.", "safe_region."))
            for name, value in list(vars(module).items())
            if isinstance(value, Dispatcher)
        }

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
    after = compiled()
    print({name: after[name] for name in after if after[name] != before.get(name)})
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled without the JIT")
def test_nothing_is_compiled_after_the_warm_up():
    program = textwrap.dedent(_PROGRAM)
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=600
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "{}"
