"""Every target takes what is as it should be, and a little of what is not; `make fuzz` does the rest."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.budgets import BUDGETS
from tests.fuzz.commands import COMMANDS
from tests.fuzz.devices import DEVICES
from tests.fuzz.feeds import FILES, HEADS, NAMES, REDIS, SCRAPES
from tests.fuzz.gateways import FRAMES, HTTP
from tests.fuzz.queues import QUEUE, TURNS
from tests.fuzz.rows import ENTRIES, STORED
from tests.fuzz.texts import ADDRESSES, EXPRESSIONS, IDF, KEYS, RELOADS, SETTINGS, TOKENS
from tests.fuzz.walks import WALKS
from tests.support.amounts import examples

TARGETS = (COMMANDS, DEVICES, ENTRIES, STORED, ADDRESSES, EXPRESSIONS, IDF, KEYS, SETTINGS, TOKENS)
TARGETS += (REDIS, SCRAPES, HEADS, RELOADS, WALKS, TURNS, QUEUE, BUDGETS, FRAMES, HTTP)
READERS = [pytest.param(one, marks=pytest.mark.processes) for one in (FILES, NAMES)]
"""What decodes in another process."""


def changed(data, chance):
    """Change some bytes: others in their place, some more, some fewer."""
    found = bytearray(data)
    for _ in range(chance.randint(0, 4)):
        at = chance.randint(0, len(found))
        match chance.randrange(3):
            case 0:
                found[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                found[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 4)))
            case 2:
                del found[at : at + chance.randint(1, 8)]
    return bytes(found)


@pytest.mark.parametrize("target", [*TARGETS, *READERS], ids=lambda one: one.name)
def test_a_target(target):
    run, seeds, chance = target.make(), target.seeds(), random.Random(1)
    for seed in seeds:
        run(seed)
    for _ in range(examples(100)):
        run(changed(chance.choice(seeds), chance))


@pytest.mark.parametrize("target", [IDF, KEYS, SETTINGS, EXPRESSIONS, ENTRIES], ids=lambda one: one.name)
def test_depth_beyond_measure(target):
    run = target.make()
    for text in ("[", '{"keys":', "(", "NOT ", "a = ["):
        run(50_000 * text.encode())
