"""What the tests of AP-Trees share."""

from __future__ import annotations

import pytest

from index.published.ap_tree import rebuilds


@pytest.fixture
def tiny_slices(monkeypatch):
    """Rebuild nearly everything beside, by a few clauses or objects a step."""
    monkeypatch.setattr(rebuilds, "_QUICK_MAX", 30)
    monkeypatch.setattr(rebuilds, "_BULK_LEAST", 100_000)
    monkeypatch.setattr(rebuilds, "_SLICE", 23)
    monkeypatch.setattr(rebuilds, "_RIDE", 5)
    monkeypatch.setattr(rebuilds, "_RIDE_EACH", 0)
