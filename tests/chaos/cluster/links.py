"""Relays between nodes and the rest, which can be cut as networks are: silently, or with a reset."""

from __future__ import annotations

import asyncio

from tests.support.proxy import Pair, Proxy


class Link(Proxy):
    """A relay that can be cut. While it is cut, nothing passes, on old connections nor on new ones."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self._is_cut = False

    def cut_off(self, *, is_silent: bool) -> None:
        """Cut it; silently, so that both sides have to notice, or with resets and refusals."""
        self._is_cut = True
        if is_silent:
            self.stall()
        else:
            self.is_open = False
            self.cut()

    def heal(self) -> None:
        """Let everything pass again, what was held back first."""
        self._is_cut, self.is_open = False, True
        self.resume()

    def _relay(
        self, pair: Pair, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, to_server: bool
    ) -> None:
        if self._is_cut:
            pair.flowing.clear()
        super()._relay(pair, source, sink, to_server=to_server)
