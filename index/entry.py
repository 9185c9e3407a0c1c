"""Entries of the catalogue: indexes that are imported when they are made, and the kinds of them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from index.square import Square

_Index_co = TypeVar("_Index_co", covariant=True)

_PACKAGE = "index."

NO_INDEX = "none"
"""Name for no index of a kind, where the engine can do without one."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[_Index_co]):
    """Makes an index. Its module is imported at the first call; processes can send entries to each other.

    Parameters
    ----------
    path
        Module and class, with a colon between.
    what
        What it is, in half a line; empty for a part of others that cannot be chosen alone.
    source
        Paper and section; empty for nearcast's own.
    takes_square
        Whether its class has the parameter `square`.
    options
        Other parameters of its class, by name.
    parts
        Indexes that its class combines, its first parameters.
    """

    path: str
    what: str = ""
    source: str = ""
    takes_square: bool = True
    options: tuple[tuple[str, Any], ...] = ()
    parts: tuple[Entry[Any], ...] = ()

    def __call__(self, square: Square | None = None) -> _Index_co:
        """Make one.

        Parameters
        ----------
        square
            Where most things are; None if that is not known.

        Raises
        ------
        TypeError
            If the path names anything but a class of this package.
        """
        # An entry that comes from a file could name anything: only classes of indexes are called.
        module, _, name = self.path.partition(":")
        make = getattr(import_module(module), name) if module.startswith(_PACKAGE) else None
        if not isinstance(make, type) or not make.__module__.startswith(_PACKAGE):
            raise TypeError(f"{self.path} is no class of {_PACKAGE}*")
        options = {"square": square} if self.takes_square else {}
        made = make(*(part(square) for part in self.parts), **options, **dict(self.options))
        return cast("_Index_co", made)


@dataclass(frozen=True, slots=True)
class Kind:
    """All indexes of one contract, of which a setting chooses one.

    Parameters
    ----------
    name
        What they are indexes of.
    setting
        The field of the server's settings.
    what
        What they are for.
    default
        What the server uses.
    indexes
        By name.
    without
        What does their work if there is none; empty if there has to be one.
    """

    name: str
    setting: str
    what: str
    default: str
    indexes: Mapping[str, Entry[Any]]
    without: str = ""

    @property
    def flag(self) -> str:
        """The setting on a command line."""
        return f"--{self.setting.replace('_', '-')}"

    @property
    def names(self) -> tuple[str, ...]:
        """What the setting may be."""
        return ((NO_INDEX,) if self.without else ()) + tuple(self.indexes)

    def limit(self, name: str) -> str:
        """Say what the setting must be.

        Parameters
        ----------
        name
            What was given, which is none of the names.
        """
        close = difflib.get_close_matches(name, self.names, 1)
        guess = f"; did you mean {close[0]!r}?" if close else ""
        return f"one that `nearcast indexes` lists for {self.name}{guess}"
