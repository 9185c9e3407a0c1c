"""Entries of the catalogue: indexes whose modules are imported on first use, and the kinds of indexes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from index.plugins import plugins, source_of

if TYPE_CHECKING:
    from index.square import Square

_Index_co = TypeVar("_Index_co", covariant=True)

_PACKAGE = "index."

NO_INDEX = "none"
"""The name for no index of a kind that is optional for the engine."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[_Index_co]):
    """Makes an index. The first call imports its module. Processes can send entries to each other.

    Parameters
    ----------
    path
        Module and class, separated by a colon.
    what
        A description in half a line; empty for a part of other indexes that cannot be chosen alone.
    source
        Paper and section; empty for nearcast's own.
    takes_square
        Whether its class has the parameter `square`. The class of a plug-in has it.
    options
        Other parameters of its class, by name.
    parts
        Indexes that its class combines, its first parameters.
    plugin_of
        For an index of another package: the setting under which the package declares it.
    """

    path: str
    what: str = ""
    source: str = ""
    takes_square: bool = True
    options: tuple[tuple[str, Any], ...] = ()
    parts: tuple[Entry[Any], ...] = ()
    plugin_of: str = ""

    def __call__(self, square: Square | None = None) -> _Index_co:
        """Make an index.

        Parameters
        ----------
        square
            The square that contains most items; None if it is not known.

        Raises
        ------
        TypeError
            If the path names neither a class of this package nor one that an installed package declares.
        """
        make = self._class()
        options = {"square": square} if self.takes_square else {}
        made = make(*(part(square) for part in self.parts), **options, **dict(self.options))
        return cast("_Index_co", made)

    def _class(self) -> type[Any]:
        """Import the class. An entry from a file could name any callable: only classes are called."""
        module, _, name = self.path.partition(":")
        declared = {point.value for point in plugins(self.plugin_of).values()} if self.plugin_of else ()
        is_own = module.startswith(_PACKAGE)
        make = getattr(import_module(module), name) if is_own or self.path in declared else None
        if not isinstance(make, type) or (is_own and not make.__module__.startswith(_PACKAGE)):
            raise TypeError(f"{self.path} is not a class of {_PACKAGE}*")
        return make


def add_plugins(setting: str, indexes: dict[str, Entry[Any]]) -> None:
    """Add the indexes that installed packages declare, except under names that are taken.

    Parameters
    ----------
    setting
        The setting that chooses the index.
    indexes
        The indexes of this package, by name.
    """
    for name, point in plugins(setting).items():
        indexes.setdefault(name, Entry(point.value, "a plug-in", source_of(point), plugin_of=setting))


@dataclass(frozen=True, slots=True)
class Kind:
    """All indexes of one contract. A setting chooses one of them.

    Parameters
    ----------
    name
        The items that are indexed.
    setting
        The field of the server's settings.
    what
        The purpose of the indexes.
    default
        The name of the index that the server uses by default.
    indexes
        The indexes by name.
    without
        The parts that do the work if there is no index of this kind; empty if there has to be one.
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
        """The valid values of the setting."""
        return ((NO_INDEX,) if self.without else ()) + tuple(self.indexes)

    def limit(self, name: str) -> str:
        """Describe the valid values of the setting.

        Parameters
        ----------
        name
            The given value, which is not one of the names.
        """
        close = difflib.get_close_matches(name, self.names, 1)
        guess = f"; did you mean {close[0]!r}?" if close else ""
        return f"one that `nearcast indexes` lists for {self.name}{guess}"
