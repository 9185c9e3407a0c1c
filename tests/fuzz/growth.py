"""Messages that are as they should be, of which some field has become long: bytes choose which, and how
long."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor

BYTES_MAX = 1_000_000
"""What one growth adds at most, about."""
DEPTH_MAX = 8
_NUMBERS = (0, 1, 2, 64, 1_000, 2**31 - 1)
_TEXTS = ("a", "", "\u0301", "\U0001d54f")


class Choices:
    """Numbers that bytes stand for; 0 once there are no more.

    Parameters
    ----------
    data
        The bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def below(self, count: int) -> int:
        """Return a number below another one."""
        value = self._data[self._place] if self._place < len(self._data) else 0
        self._place += 1
        return value % count

    def size(self, size_max: int) -> int:
        """Return a number up to another one, of any magnitude."""
        return min(size_max, (1 + self.below(16)) << self.below(20))

    @property
    def is_over(self) -> bool:
        """Whether there are no more."""
        return self._place >= len(self._data)


def grow(message: Any, choices: Choices, depth: int = 0) -> None:
    """Make one field of a message long, or of one that it holds."""
    fields = message.DESCRIPTOR.fields
    field = fields[choices.below(len(fields))]
    if field.type == FieldDescriptor.TYPE_MESSAGE and not field.is_repeated:
        if depth < DEPTH_MAX:
            grow(getattr(message, field.name), choices, depth + 1)
    elif field.is_repeated:
        _lengthen(message, field, choices, depth)
    elif field.type == FieldDescriptor.TYPE_STRING:
        setattr(message, field.name, _TEXTS[choices.below(4)] * choices.size(BYTES_MAX // 4))
    elif field.type == FieldDescriptor.TYPE_BYTES:
        setattr(message, field.name, bytes(choices.size(BYTES_MAX)))
    elif field.type == FieldDescriptor.TYPE_ENUM:
        setattr(message, field.name, choices.below(5))
    else:
        kind = bool if field.type == FieldDescriptor.TYPE_BOOL else int
        setattr(message, field.name, kind(_NUMBERS[choices.below(len(_NUMBERS))]))


def _lengthen(message: Any, field: FieldDescriptor, choices: Choices, depth: int) -> None:
    """Make a list long, or something in it."""
    items = getattr(message, field.name)
    if field.type != FieldDescriptor.TYPE_MESSAGE:
        is_text = field.type == FieldDescriptor.TYPE_STRING
        value = _TEXTS[choices.below(4)] if is_text else _NUMBERS[choices.below(len(_NUMBERS))]
        items.extend([value] * choices.size(BYTES_MAX // 4))
        return
    if not items:
        items.add()
    if choices.below(2) and depth < DEPTH_MAX:
        grow(items[0], choices, depth + 1)
        return
    data = items[0].SerializeToString()
    for _ in range(choices.size(BYTES_MAX // (len(data) + 3))):
        items.add().MergeFromString(data)
