"""The blocking publisher."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

import nearcast.publisher
from nearcast.model import GeoObject
from nearcast.sync.loop_thread import LoopThread


class Publisher:
    """Publishes objects. `Client.publisher` creates it; it is a context manager.

    Its methods are those of `nearcast.Publisher`.
    """

    def __init__(self, loop: LoopThread, publisher: nearcast.publisher.Publisher) -> None:
        self._loop = loop
        self._publisher = publisher

    def __repr__(self) -> str:
        return self._loop.call(self._publisher.__repr__).replace("nearcast.", "nearcast.sync.", 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def publish(self, objects: GeoObject | Iterable[GeoObject]) -> list[int]:
        """Publish objects; return their ids in order, once the objects are on the server's disk.

        See `nearcast.Publisher.publish`.
        """
        return self._loop.run(self._publisher.publish, objects)

    def retract(self, *ids: int, key: str | None = None, keys: Iterable[str] | None = None) -> None:
        """Retract objects, all or none. See `nearcast.Publisher.retract`."""
        self._loop.run(self._publisher.retract, *ids, key=key, keys=keys)

    def close(self) -> None:
        """End the stream. Objects stay published. Later calls raise `ClosedError`."""
        self._loop.end(self._publisher.close)
