"""Every fault once, with few devices: `make chaos` is the same at length."""

from __future__ import annotations

import pytest

from tests.chaos.run import NAMES, run


@pytest.mark.parametrize("fault", NAMES)
async def test_nothing_is_lost_and_every_list_is_right(fault, tmp_path):
    (tally,) = await run({fault: 1}, tmp_path, 12, 1, lambda *_: None)
    assert tally.violations == []
    assert tally.injected == 1
    assert tally.lists > 0
    assert tally.commands > 0
