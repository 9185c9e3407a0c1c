"""Values of a partition in a plain form: JSON for their structure, bytes for their arrays.

Reading a value runs no code but that of `object.__new__`: it makes arrays, containers and objects of
classes of this program, and sets their attributes, so that a file can contain nothing else. Pickle, which
serves the same purpose, calls any function that a file names.

    {"root": 0, "nodes": [["object", "engine.engine:Engine", {"now_ms": 7, "objects": [1]}], ...]}

Numbers, texts, truth values and null represent themselves. A list of one number refers to a node, so that
shared objects are shared again after reading, and cycles are kept. Scalars of numpy become Python's. A
node is one of

    ["list", items]  ["tuple", items]  ["set", items]  ["dict", keys, values]
    ["object", class, attributes]  ["named", class, items]  ["member", class, name]  ["class", class]
    ["array", type, shape, is_transposed, place, is_writable]  ["outside", name]

The last one is an object that is not part of the value: whoever reads the value supplies it.

Cost: O(parts), some microseconds each.
"""

from __future__ import annotations

import copyreg
import importlib
import math
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

PACKAGES = ("engine", "index", "safe_region", "streaming")
"""The packages whose classes are allowed."""

_PLAIN = frozenset({int, float, str, bool, type(None)})
_CONTAINERS: dict[type, str] = {list: "list", tuple: "tuple", set: "set", dict: "dict"}

_NODES = frozenset({*_CONTAINERS.values(), "object", "named", "member", "class", "array", "outside"})

Put = Callable[[memoryview], Any]
"""Stores the bytes of an array; returns their place, as JSON."""

Get = Callable[[Any, int], Any]
"""Returns a number of bytes at a place."""

Outside = Mapping[str, object]
"""Objects to which a value refers and which are not part of it, by name."""

NOTHING: Outside = {}


class PlainError(Exception):
    """A value contains an object that has no plain form, or a form is not valid."""


def encoded(value: object, put: Put, outside: Outside = NOTHING) -> dict[str, Any]:
    """Return the form of a value, without the objects that are `outside`.

    Raises
    ------
    PlainError
        If there is none.
    """
    encoder = _Encoder(put, outside)
    return {"root": encoder.form(value), "nodes": encoder.nodes}


def decoded(form: Any, get: Get, outside: Outside = NOTHING) -> Any:  # noqa: ANN401
    """Return the value of a form, which refers to the objects that are `outside`.

    Raises
    ------
    PlainError
        If the form is not valid.
    """
    try:
        return _Decoder(form["nodes"], get, outside).value(form["root"])
    except PlainError:
        raise
    except Exception as error:  # an invalid form may raise anything
        raise PlainError(f"it has no plain form: {type(error).__name__}") from error


class _Encoder:
    def __init__(self, put: Put, outside: Outside) -> None:
        self.nodes: list[list[Any]] = []
        self._put = put
        self._outside = {id(one): name for name, one in outside.items()}
        self._known: dict[int, int] = {}
        self._kept: list[object] = []
        """Objects that have a node; they stay alive to the end, so that their addresses stay unique."""

    def form(self, value: object) -> Any:  # noqa: ANN401 - JSON
        """Return the form of a value."""
        if type(value) in _PLAIN:
            return value
        if isinstance(value, np.generic):
            return self.form(value.item())
        number = self._known.get(id(value))
        if number is None:
            number = self._known[id(value)] = len(self.nodes)
            self._kept.append(value)
            node: list[Any] = []
            self.nodes.append(node)
            node += self._node(value)
        return [number]

    def _node(self, value: object) -> list[Any]:
        if (outside := self._outside.get(id(value))) is not None:
            return ["outside", outside]
        kind = type(value)
        if (name := _CONTAINERS.get(kind)) is not None:
            return self._container(name, value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        return self._of_ours(kind, value)

    def _of_ours(self, kind: type, value: Any) -> list[Any]:  # noqa: ANN401
        """Return the node of a class of this program, or of an instance of one."""
        if isinstance(value, type):
            return ["class", _named(value)]
        if isinstance(value, Enum):
            return ["member", _named(kind), value.name]
        if isinstance(value, tuple):
            return ["named", _named(kind), [self.form(one) for one in value]]
        return ["object", _named(kind), {name: self.form(one) for name, one in _attributes(value)}]

    def _container(self, name: str, value: Any) -> list[Any]:  # noqa: ANN401
        if name == "dict":
            return [name, self._items(value.keys()), self._items(value.values())]
        return [name, self._items(value)]

    def _items(self, values: Iterable[object]) -> list[Any]:
        found = list(values)
        return found if set(map(type, found)) <= _PLAIN else [self.form(one) for one in found]

    def _array(self, value: np.ndarray[Any, Any]) -> list[Any]:
        if type(value) is not np.ndarray or value.dtype.hasobject:
            raise PlainError(f"an array of {value.dtype} has no plain form")
        is_transposed = bool(value.flags.f_contiguous and not value.flags.c_contiguous)
        flat = value.T if is_transposed else np.ascontiguousarray(value)
        place = self._put(flat.reshape(-1).view(np.uint8).data)
        kind = np.lib.format.dtype_to_descr(value.dtype)
        return ["array", kind, list(value.shape), is_transposed, place, bool(value.flags.writeable)]


class _Decoder:
    def __init__(self, nodes: list[list[Any]], get: Get, outside: Outside) -> None:
        self._nodes, self._get, self._others = nodes, get, outside
        self._made: dict[int, Any] = {}

    def value(self, form: Any) -> Any:  # noqa: ANN401
        """Return the value of a form."""
        if type(form) in _PLAIN:
            return form
        (number,) = form
        if number not in self._made:
            name, *parts = self._nodes[number]
            if name not in _NODES:
                raise PlainError(f"{name} is not a node")
            self._made[number] = getattr(self, f"_{name}")(number, *parts)
        return self._made[number]

    def _values(self, forms: list[Any]) -> list[Any]:
        return [self.value(one) for one in forms]

    def _outside(self, _number: int, name: str) -> object:
        return self._others[name]

    def _list(self, number: int, items: list[Any]) -> list[Any]:
        found = self._made[number] = []
        found += self._values(items)
        return found

    def _tuple(self, _number: int, items: list[Any]) -> tuple[Any, ...]:
        return tuple(self._values(items))

    def _set(self, number: int, items: list[Any]) -> set[Any]:
        found: set[Any] = set()
        self._made[number] = found
        found.update(self._values(items))
        return found

    def _dict(self, number: int, keys: list[Any], values: list[Any]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        self._made[number] = found
        found.update(zip(self._values(keys), self._values(values), strict=True))
        return found

    def _object(self, number: int, name: str, attributes: dict[str, Any]) -> object:
        found: object = object.__new__(_class(name))
        self._made[number] = found
        for key, form in attributes.items():
            if key.startswith("__"):
                raise PlainError(f"{name} has no attribute {key}")
            object.__setattr__(found, key, self.value(form))
        return found

    def _named(self, _number: int, name: str, items: list[Any]) -> tuple[Any, ...]:
        kind = _class(name)
        if not issubclass(kind, tuple) or len(items) != len(getattr(kind, "_fields", ())):
            raise PlainError(f"{name} is not a tuple of {len(items)}")
        return tuple.__new__(kind, self._values(items))

    def _member(self, _number: int, name: str, member: str) -> Enum:
        kind = _class(name)
        if not issubclass(kind, Enum):
            raise PlainError(f"{name} has no members")
        return kind[member]

    def _class(self, _number: int, name: str) -> type:
        return _class(name)

    def _array(self, _number: int, *parts: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401
        kind, shape, is_transposed, place, is_writable = parts
        dtype = np.lib.format.descr_to_dtype(_tuples(kind))
        if dtype.hasobject:
            raise PlainError("an array of objects has no plain form")
        size = math.prod(shape) * dtype.itemsize
        if size == 0:
            return np.empty(shape, dtype)
        flat = np.frombuffer(self._get(place, size), dtype=np.uint8).view(dtype)
        # A transposed array was written as its transpose.
        found = flat.reshape(shape[::-1]).T if is_transposed else flat.reshape(shape)
        found.flags.writeable = bool(is_writable)
        return found


def _attributes(value: object) -> list[tuple[str, Any]]:
    """Return the attributes of an object, those in slots included."""
    slots = copyreg._slotnames(type(value))  # type: ignore[attr-defined]  # noqa: SLF001 - as pickle does
    found = [(name, getattr(value, name)) for name in slots if hasattr(value, name)]
    return [*getattr(value, "__dict__", {}).items(), *found]


def _named(kind: type) -> str:
    """Return the name of a class, by which `_class` finds it."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    _class(name)
    return name


@cache
def _class(name: str) -> type:
    """Return a class of this program by its name."""
    module, _, path = name.partition(":")
    if module.partition(".")[0] not in PACKAGES or "." in path:
        raise PlainError(f"{name} is not a class of a partition")
    found = vars(importlib.import_module(module)).get(path)
    if not isinstance(found, type) or found.__module__ != module:
        raise PlainError(f"{name} is not a class of a partition")
    return found


def _tuples(kind: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the description of a type, with tuples where numpy requires them."""
    if not isinstance(kind, list):
        return kind
    return [tuple(_shape(part) for part in field) for field in kind]


def _shape(part: Any) -> Any:  # noqa: ANN401
    if isinstance(part, list) and all(isinstance(one, int) for one in part):
        return tuple(part)
    return _tuples(part)
