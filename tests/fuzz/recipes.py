"""Short inputs that become long messages: a fuzzer would not write a megabyte that has a structure.

A recipe is a sequence of steps over a stack of byte strings. What is on the stack in the end, joined,
is the message. Whatever bytes there are, they are a recipe, and no message becomes longer than allowed.
"""

from __future__ import annotations

import struct

LITERAL, REPEAT, NEST, JOIN = range(4)
"""Push bytes; repeat the top; make a field with a length of the top; join the two at the top."""
_LITERAL_MAX = 255
_TIMES = struct.Struct("<I")
_FIELD_MAX = 15


def message_of(recipe: bytes, bytes_max: int) -> bytes:
    """Follow a recipe."""
    stack: list[bytes] = []
    place = 0
    while place < len(recipe):
        step, place = recipe[place] % 4, place + 1
        if step == LITERAL:
            size = recipe[place] if place < len(recipe) else 0
            stack.append(recipe[place + 1 : place + 1 + size])
            place += 1 + size
        elif step == REPEAT:
            (times,) = _TIMES.unpack(recipe[place : place + 4].ljust(4, b"\0"))
            place += 4
            if stack and stack[-1]:
                stack[-1] *= min(times, bytes_max // len(stack[-1]))
        elif step == NEST:
            number = 1 + recipe[place] % _FIELD_MAX if place < len(recipe) else 1
            place += 1
            if stack:
                stack[-1] = field(number, stack[-1])[:bytes_max]
        elif len(stack) > 1:
            top = stack.pop()
            stack[-1] = (stack[-1] + top)[:bytes_max]
    return b"".join(stack)[:bytes_max]


def field(number: int, content: bytes) -> bytes:
    """Write a field that has a length."""
    size, found = len(content), bytearray([number << 3 | 2])
    while size >= 128:
        found.append(size & 127 | 128)
        size >>= 7
    found.append(size)
    return bytes(found) + content


def literal(content: bytes) -> bytes:
    """Return a recipe of these bytes."""
    parts = [content[i : i + _LITERAL_MAX] for i in range(0, len(content), _LITERAL_MAX)] or [b""]
    found = bytes([LITERAL, len(parts[0])]) + parts[0]
    return found + b"".join(bytes([LITERAL, len(part)]) + part + bytes([JOIN]) for part in parts[1:])


def repeated(recipe: bytes, times: int) -> bytes:
    """Return a recipe of what another one makes, so many times."""
    return recipe + bytes([REPEAT]) + _TIMES.pack(times)


def nested(number: int, *recipes: bytes) -> bytes:
    """Return a recipe of a field whose content is what others make, one behind the other."""
    return joined(*recipes) + bytes([NEST, number - 1])


def joined(*recipes: bytes) -> bytes:
    """Return a recipe of what others make, one behind the other."""
    first, *rest = recipes or (literal(b""),)
    return first + b"".join(one + bytes([JOIN]) for one in rest)
