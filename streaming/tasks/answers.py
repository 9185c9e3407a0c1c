"""The response of a partition to a batch: changes, counts, feedback, and rows that were refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streaming.tasks.log import Head, LoggedMessages

CHANGES, COUNTS = "changes", "counts"

ANSWERS_DDL = "partition int, kind string, block binary"


class AnswerRow(NamedTuple):
    """A row of a partition's response."""

    partition: int
    """The number of the partition; for feedback, the number of the replicas that receive it."""
    kind: str
    block: bytes

    @classmethod
    def counted(cls, partition: int, counts: Mapping[str, int]) -> AnswerRow:
        """Return a row of counts."""
        return cls(partition, COUNTS, json.dumps(counts).encode())


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a batch, and the data of the batch that the state keeps."""

    head: Head
    rows: list[AnswerRow]
    messages: LoggedMessages | None
    subscriptions: bytes | None

    def pack(self) -> bytes:
        """Return it as bytes."""
        numbers: dict[str, Any] = {"head": self.head, "rows": [row[:2] for row in self.rows]}
        blocks = [row.block for row in self.rows]
        if self.messages is not None:
            about = self.messages
            numbers["messages"] = about.next_number, about.latest_ms, about.first_ms
            blocks.append(self.messages.block)
        if self.subscriptions is not None:
            numbers["subscriptions"] = True
            blocks.append(self.subscriptions)
        numbers["sizes"] = [len(block) for block in blocks]
        return json.dumps(numbers).encode() + b"\n" + b"".join(blocks)

    @classmethod
    def unpack(cls, data: bytes) -> Answer:
        """Read it from bytes."""
        first, _, rest = data.partition(b"\n")
        numbers = json.loads(first)
        ends = np.cumsum(numbers["sizes"]).tolist()
        blocks = [rest[end - size : end] for end, size in zip(ends, numbers["sizes"], strict=True)]
        subscriptions = blocks.pop() if "subscriptions" in numbers else None
        messages = None
        if "messages" in numbers:
            next_number, latest_ms, first_ms = numbers["messages"]
            messages = LoggedMessages(next_number, latest_ms, blocks.pop(), first_ms)
        rows = [
            AnswerRow(partition, kind, block)
            for (partition, kind), block in zip(numbers["rows"], blocks, strict=True)
        ]
        return cls(Head(*numbers["head"]), rows, messages, subscriptions)
