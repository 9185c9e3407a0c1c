"""Which indexes of the contract suites are published ones, or those of the benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

_SERVED = ("naive", "iqf-plus", "sq-plus-tree", "inverted-grid", "pairs", "the example")
"""Names of the default indexes, of the definition, and of the example of a plug-in begin so."""


def marked(names: Iterable[str]) -> list[Any]:
    """Return names as parameters; those of published indexes have the marker."""
    return [
        pytest.param(name, marks=() if name.startswith(_SERVED) else pytest.mark.published)
        for name in names
    ]


def is_published(make: Callable[[], object]) -> bool:
    """Whether an index, or a part of a pair, lies in a folder of published structures."""
    index = make()
    parts = [index, *getattr(index, "__dict__", {}).values()]
    return any(type(one).__module__.startswith(("index.published.", "bench.")) for one in parts)
