"""Specs of each kind of subscription: validated, stored, as arrays. A new kind is a line in `KINDS`."""

from server.core.specs.contract import Kind
from server.core.specs.table import KINDS, kind_of_spec

__all__ = ["KINDS", "Kind", "kind_of_spec"]
