"""What is left of a text in a process: all strings that can be reached from an object."""

from __future__ import annotations

import gc
import types
from typing import Any

_NOT_FOLLOWED = (type, types.ModuleType, types.FunctionType, types.FrameType)
"""Code and what it names belong to everybody."""


def strings_with(text: str, *roots: Any) -> list[str]:
    """Return strings, and texts in bytes, that have a text and can be reached from some objects."""
    found, seen, waiting = [], set(), list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, str):
            found += [one] if text in one else []
        elif isinstance(one, bytes | bytearray):
            found += [repr(one)] if text.encode() in one else []
        elif not isinstance(one, _NOT_FOLLOWED):
            waiting += gc.get_referents(one)
            if isinstance(one, types.MethodType):
                waiting.append(one.__self__)
    return found
