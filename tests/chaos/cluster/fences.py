"""Reads every record of the devices' stream as it is written: was its writer still the owner of the slot?

Each write for a slot carries its condition, the sequence of the owner's record, in the headers that the
stream keeps. The record of the owner that is the latest at that place of the stream must be this one.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode

from nats.aio.msg import Msg

from cluster.jetstream import JetStreamLog
from cluster.records import slot_of_owner
from cluster.registry import SEEN
from cluster.stream import LAST_SEQUENCE, LAST_SEQUENCE_OF

_BATCH = "Nats-Batch-Id"
_DEVICE = "device"
_POLL_S = 0.02


class Fences:
    """Compares the conditions of writes with the owners.

    Parameters
    ----------
    log
        A connection of its own, directly to the servers of the log.
    """

    def __init__(self, log: JetStreamLog) -> None:
        self._stream = log._devices
        self._owners: dict[str, int] = {}
        """By the subject of a slot's owner: the sequence of its latest record."""
        self._read = 0
        self.subscriptions: set[tuple[str, int]] = set()
        """Device and number of every subscription that is stored."""
        self.writes = 0
        """Writes whose condition was compared, each batch as one."""
        self.owners = 0
        """Records of owners."""
        self.unread = 0
        """Records that others had replaced before they were read."""
        self.stale: list[str] = []

    async def follow(self) -> None:
        """Read the stream, until cancelled."""
        async for message in self._stream.deliveries(0):
            self._look(message)

    @property
    def owner_count(self) -> int:
        """How many slots have a record of an owner, which may be one of a release."""
        return len(self._owners)

    async def caught_up(self) -> None:
        """Wait until everything has been read that is in the stream now."""
        end = await self._stream.end()
        while self._read < end:  # noqa: ASYNC110 - the reader has no event to offer
            await asyncio.sleep(_POLL_S)

    def _look(self, message: Msg) -> None:
        sequence, subject = message.metadata.sequence.stream, message.subject
        self.unread += sequence - self._read - 1
        self._read = sequence
        _, _, key = subject.partition(".devices.")
        headers = message.headers or {}
        if slot_of_owner(key) is not None:
            self.owners += 1
            self._require(subject, int(headers[LAST_SEQUENCE]), f"owner {subject}", sequence)
            self._owners[subject] = sequence
        elif key.startswith("slot."):
            self._look_at_write(subject, headers, sequence)
            self._store(key, message.data)

    def _look_at_write(self, subject: str, headers: dict[str, str], sequence: int) -> None:
        if LAST_SEQUENCE_OF in headers:
            self.writes += 1
            self._require(headers[LAST_SEQUENCE_OF], int(headers[LAST_SEQUENCE]), subject, sequence)
        elif _BATCH not in headers:
            self.stale.append(f"record {sequence} of {subject} was written without a condition")

    def _store(self, key: str, value: bytes) -> None:
        _, _, kind, word, number = (key.split(".") + [""] * 2)[:5]
        if kind == _DEVICE and number and int(number) != SEEN:
            device_id = urlsafe_b64decode(word + "=" * (-len(word) % 4)).decode()
            (self.subscriptions.add if value else self.subscriptions.discard)((device_id, int(number)))

    def _require(self, owner: str, expected: int, what: str, sequence: int) -> None:
        """Compare a condition with the latest owner that was read."""
        latest = self._owners.get(owner, 0)
        if expected < latest:
            self.stale.append(
                f"record {sequence} ({what}) has the condition {expected}, the owner is {latest}"
            )
