"""Indexes by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from nearcast_server.errors import requiring

if TYPE_CHECKING:
    from index.contracts import ClauseIndex, MovingIndex, ObjectIndex, SubscriptionIndex
    from index.entry import Kind

IndexKind: TypeAlias = Literal["object", "subscription", "clause", "moving"]
"""Indexes of objects, of top-k subscriptions, of clauses of boolean subscriptions, or of clauses of which
the ranges move."""

_KINDS: tuple[IndexKind, ...] = ("object", "subscription", "clause", "moving")


@overload
def make_index(
    name: str, kind: Literal["object"], *, square: tuple[float, float, float] | None = None
) -> ObjectIndex: ...
@overload
def make_index(
    name: str, kind: Literal["subscription"], *, square: tuple[float, float, float] | None = None
) -> SubscriptionIndex: ...
@overload
def make_index(
    name: str, kind: Literal["clause"], *, square: tuple[float, float, float] | None = None
) -> ClauseIndex: ...
@overload
def make_index(
    name: str, kind: Literal["moving"], *, square: tuple[float, float, float] | None = None
) -> MovingIndex: ...
@overload
def make_index(name: str, *, square: tuple[float, float, float] | None = None) -> Any: ...  # noqa: ANN401
def make_index(
    name: str,
    kind: IndexKind | None = None,
    *,
    square: tuple[float, float, float] | None = None,
) -> Any:
    """Make an empty index over arrays.

    Its module is imported on the first call, and its kernels are compiled when they are first used. The
    methods of each kind, with shapes and units, are in `index.contracts`; `index.batches` has the arrays.

    Parameters
    ----------
    name
        Name of the index, such as ``"iqf-plus"``; `index_names` has all.
    kind
        What it indexes. It may be left out if only one kind has an index of this name.
    square
        The square that contains most items, for indexes that divide space: centre and half a side, as
        ``(x_m, y_m, half_m)`` on the plane. None if it is not known; the index then estimates it.

    Returns
    -------
    ObjectIndex, SubscriptionIndex, ClauseIndex or MovingIndex
        A new index, by its kind.

    Raises
    ------
    ValueError
        If no kind, or more than one, has an index of this name.
    MissingPackageError
        If the extra ``server`` is not installed.

    Examples
    --------
    ::

        index = nearcast_server.make_index("iqf-plus")
        naive = nearcast_server.make_index("naive", "object")
    """
    with requiring("server"):
        from index.square import Square  # noqa: PLC0415

        kinds = _kinds()
        found = [one for one in _chosen(kind) if name in kinds[one].indexes]
        if len(found) != 1:
            raise ValueError(_why_not_one(name, found, kind))
        return kinds[found[0]].indexes[name](None if square is None else Square(*square))


def index_names(kind: IndexKind) -> tuple[str, ...]:
    """Return the names of the indexes of a kind.

    Parameters
    ----------
    kind
        What they index: ``"object"``, ``"subscription"``, ``"clause"`` or ``"moving"``.

    Raises
    ------
    ValueError
        If there is no such kind.

    Examples
    --------
    >>> "iqf-plus" in nearcast_server.index_names("object")
    True
    """
    (kind,) = _chosen(kind)
    return tuple(_kinds()[kind].indexes)


def _chosen(kind: IndexKind | None) -> tuple[IndexKind, ...]:
    if kind is not None and kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}, must be one of {', '.join(_KINDS)}")
    return _KINDS if kind is None else (kind,)


def _kinds() -> dict[IndexKind, Kind]:
    from index.catalogue import KINDS  # noqa: PLC0415

    return {kind: KINDS[f"{kind}_index"] for kind in _KINDS}


def _why_not_one(name: str, found: list[IndexKind], kind: IndexKind | None) -> str:
    if found:
        return f"name is {name!r}, which {' and '.join(found)} indexes have: give the kind"
    if kind is not None:
        return f"name is {name!r}, must be one of {', '.join(index_names(kind))}"
    return f"name is {name!r}, must be one of index_names(kind) of a kind: {', '.join(_KINDS)}"
