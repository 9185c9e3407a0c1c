"""A TCP proxy that misbehaves on command: it cuts, stalls and delays connections, and shuts its door."""

from __future__ import annotations

import asyncio
import contextlib


class Pair:
    """One connection through the proxy: both its sockets."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        self.flowing = asyncio.Event()
        self.flowing.set()

    def cut(self) -> None:
        """Break both sides at once, as a network does: with a reset, and what is under way is lost."""
        self.flowing.set()
        for writer in (self.client, self.server):
            writer.transport.abort()


class Proxy:
    """A relay on a port of its own.

    Parameters
    ----------
    target
        Where it leads, as host:port.
    """

    def __init__(self, target: str) -> None:
        self._host, port = target.rsplit(":", 1)
        self._port = int(port)
        self.pairs: list[Pair] = []
        self.accepted_count = 0
        self.delay_s = 0.0
        """How long every chunk takes, each way; they do not overtake one another."""
        self.is_open = True
        """Whether new connections are relayed; if not, they are reset."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Break all connections."""
        for pair in self.pairs:
            pair.cut()
        self.pairs.clear()

    def stall(self) -> None:
        """Let nothing through on the connections there are: they stay open, and silent. New ones flow."""
        for pair in self.pairs:
            pair.flowing.clear()

    def resume(self) -> None:
        """Let everything through again, what was held back first."""
        for pair in self.pairs:
            pair.flowing.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.transport.abort()
            return
        pair = Pair(writer, back)
        self.pairs.append(pair)
        self.accepted_count += 1
        self._relay(pair, reader, back, to_server=True)
        self._relay(pair, there, writer, to_server=False)

    def _relay(
        self, pair: Pair, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, to_server: bool
    ) -> None:
        task = asyncio.create_task(self._carry(pair, source, sink, to_server=to_server))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(
        self, pair: Pair, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, to_server: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                await pair.flowing.wait()
                self.passing(pair, data, to_server=to_server)
                sink.write(data)
                await sink.drain()
        sink.close()
        if pair in self.pairs and to_server:
            self.pairs.remove(pair)

    def passing(self, pair: Pair, data: bytes, *, to_server: bool) -> None:
        """Look at what passes; for proxies that keep or change it."""
