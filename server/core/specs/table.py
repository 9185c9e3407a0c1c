"""Which kinds there are."""

from __future__ import annotations

from typing import Any

from server.core.specs.boolean import BooleanKind
from server.core.specs.top_k import TopKKind
from server.model import Boolean, Spec, TopK

KINDS: dict[type[Spec], type[Any]] = {
    TopK: TopKKind,
    Boolean: BooleanKind,
}
"""The kind of each type of spec."""


def kind_of_spec(spec: Spec) -> type[Any]:
    """Return the kind that a spec is of."""
    return KINDS[type(spec)]
