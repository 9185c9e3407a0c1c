"""Copies a snapshot of the store of another node into a file, and verifies that it is whole."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from cluster.v1 import snapshot_service_pb2 as pb
from server.replication.joining import CopyError

_log = logging.getLogger(__name__)

_SILENCE_S = 60.0
"""How long to wait for the next part: the other node may have to write its store first."""
_CONNECT_S = 5.0
_RESPONSE_BYTES_MAX = 1024 * 1024
_PROGRESS_S = 5.0
"""Interval at which the progress is logged."""
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
_METHOD = "/cluster.v1.SnapshotService/Copy"

Progress = Callable[[str, int, int], None]
"""Called with a stage, the amount done, and the total."""


class NodeAccess(NamedTuple):
    """How to reach another node."""

    address: str
    token: str = ""
    """Empty for a node that does not require one."""
    tls: grpc.ChannelCredentials | None = None
    """None for a connection without encryption."""
    name: str = ""
    """The name in its certificate, if it is not that of the address."""


async def copy_snapshot(access: NodeAccess, target: Path, progress: Progress | None = None) -> None:
    """Copy the store of a node into a file, in a folder that only this process uses.

    Raises
    ------
    CopyError
        If the node refuses or ends, or what arrives is not what it has sent.
    """
    options: list[tuple[str, int | str]] = [("grpc.max_receive_message_length", _RESPONSE_BYTES_MAX)]
    if access.name:
        options.append(("grpc.ssl_target_name_override", access.name))
    channel = (
        grpc.aio.insecure_channel(access.address, options)
        if access.tls is None
        else grpc.aio.secure_channel(access.address, access.tls, options)
    )
    async with channel:
        try:
            async with asyncio.timeout(_CONNECT_S):
                await channel.channel_ready()
            await _receive(channel, access.token, target, progress or logged_progress())
        except grpc.aio.AioRpcError as error:
            raise CopyError(_explained(error)) from error
        except TimeoutError as error:
            raise CopyError("it does not respond") from error
        except OSError as error:
            raise CopyError(f"{target} cannot be written: {error.strerror}") from error


def _explained(error: grpc.aio.AioRpcError) -> str:
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return "it is not the node of a cluster, or of a version that does not send its store"
    return f"{error.code().name}: {error.details()}"


async def _receive(channel: grpc.aio.Channel, token: str, target: Path, progress: Progress) -> None:
    call = channel.unary_stream(
        _METHOD,
        request_serializer=pb.CopyRequest.SerializeToString,
        response_deserializer=pb.CopyResponse.FromString,
    )
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    parts = _parts(call(pb.CopyRequest(), metadata=metadata))
    first = await anext(parts, None)
    if first is None or not first.HasField("snapshot"):
        raise CopyError("it sends no description of its store")
    described, digest, size = first.snapshot, hashlib.sha256(), 0
    with os.fdopen(os.open(target, _FLAGS, 0o600), "wb") as file:
        async for part in parts:
            size += len(part.content)
            if size > described.size_bytes:
                break
            digest.update(part.content)
            await asyncio.to_thread(file.write, part.content)
            progress("bytes", size, described.size_bytes)
        await asyncio.to_thread(_sync, file.fileno(), file.flush)
    if size != described.size_bytes or digest.digest() != described.sha256:
        raise CopyError(f"{size} of {described.size_bytes} bytes have arrived, or others than were sent")


async def _parts(call: Any) -> AsyncIterator[pb.CopyResponse]:  # noqa: ANN401 - gRPC's
    """Yield responses. Raises TimeoutError if there is none for a while."""
    while True:
        async with asyncio.timeout(_SILENCE_S):
            part = await call.read()
        if part is grpc.aio.EOF:
            return
        yield part


def _sync(number: int, flush: Callable[[], None]) -> None:
    flush()
    os.fsync(number)


def logged_progress() -> Progress:
    """Return a function that logs the progress now and then."""
    due_s = time.monotonic() + _PROGRESS_S

    def log(_stage: str, done: int, total: int) -> None:
        nonlocal due_s
        if time.monotonic() >= due_s:
            due_s += _PROGRESS_S
            _log.info("%d of %d bytes of the store of another node are copied", done, total)

    return log
