"""What docs/sdk.md says of changes, states and objects is complete, and its loop keeps a list right."""

from __future__ import annotations

import dataclasses
import random
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace

import nearcast
from nearcast import ChangeKind, ChangeReason, LiveObject, SubscriptionState
from nearcast.protocol.watcher import Watcher

SDK = (Path(__file__).resolve().parents[2] / "docs" / "sdk.md").read_text()
OBJECTS = [LiveObject(i, 14.5, 35.5, frozenset(), 0, 0, b"", "") for i in range(8)]
HISTORIES = 2_000
RESULTS = 3


async def replayed(loop, batches):
    """Run the page's loop on changes; return the list that it keeps."""

    async def changes():
        for batch in batches:
            for change in batch:
                yield change

    names = {"nearcast": nearcast, "lunch": SimpleNamespace(changes=changes)}
    exec(loop, names)  # noqa: S102 - a program of our own documentation
    return await names["kept"]()


async def test_the_loop_that_applies_changes_keeps_the_result():
    (program,) = re.findall(r"```python\n(from nearcast import ChangeKind\n.*?)```", SDK, re.DOTALL)
    code = f"async def kept():\n{textwrap.indent(program, '    ')}    return shown\n"
    loop = compile(code, "docs/sdk.md", "exec")
    for seed in range(HISTORIES):
        rng, watcher, batches = random.Random(seed), Watcher(), []
        for _ in range(RESULTS):
            result = rng.sample(OBJECTS, rng.randint(0, len(OBJECTS)))
            batches.append(watcher.difference(result))
        assert await replayed(loop, batches) == result, f"seed {seed}"


def test_every_member_that_an_app_compares_with_is_named():
    for kind in (*ChangeReason, *SubscriptionState):
        assert f"\n| {kind.name} | " in SDK
    for kind in ChangeKind:
        assert re.search(rf"`ChangeKind`:[^.]*\b{kind.name}\b", SDK)


def test_every_field_of_an_object_is_in_its_table():
    (table,) = re.findall(r"is a `LiveObject`:\n\n(.*?)\n\n", SDK, re.DOTALL)
    named = {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"\w+", row)
    }
    assert named == {one.name for one in dataclasses.fields(LiveObject)}
