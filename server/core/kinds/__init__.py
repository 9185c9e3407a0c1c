"""Kinds of subscriptions in words: a table of what core needs of each; a new one is a line in `KINDS`."""

from server.core.kinds.contract import Kind
from server.core.kinds.table import KINDS, kind_of_spec

__all__ = ["KINDS", "Kind", "kind_of_spec"]
