"""Calls between the nodes of a cluster: snapshots of stores, with a token that only nodes have."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import grpc

from identity.authenticator import Authenticator, node_token
from nearcast.transport.loopback import is_loopback
from nearcast.transport.roots import system_roots
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.joining import Fetch
from server.replication.snapshots import Snapshots
from server.transport.admission import Admission
from server.transport.listener import Listener
from server.transport.snapshot_client import NodeAccess, copy_snapshot
from server.transport.snapshot_service import SnapshotServicer, snapshot_handler

_log = logging.getLogger(__name__)


def offer_snapshots(
    listener: Listener, authenticator: Authenticator, command_loop: ReplicatedCommandLoop, token: str
) -> None:
    """Let other nodes copy the store of this one, before its listener starts.

    Parameters
    ----------
    listener
        Of this node.
    authenticator
        Of its callers.
    command_loop
        It has the store.
    token
        That of other nodes, for this one.
    """
    authenticator.accept_nodes(token)
    servicer = SnapshotServicer(Snapshots(command_loop), Admission(command_loop))
    listener.add(snapshot_handler(servicer))


def fetch_with(key: bytes, tls: grpc.ChannelCredentials | None) -> Fetch:
    """Return a function that copies the store of another node into a file.

    Parameters
    ----------
    key
        The secret of the nodes.
    tls
        How to verify other nodes; None for connections without encryption.
    """

    async def fetch(address: str, incarnation: bytes, target: Path) -> None:
        await copy_snapshot(NodeAccess(address, node_token(key, incarnation), tls), target)

    return fetch


def warn_of_plaintext(address: str, tls: grpc.ChannelCredentials | None) -> None:
    """Warn if the token of a node, which others require, is sent to other machines without encryption.

    Parameters
    ----------
    address
        At which other nodes reach this one: those of another machine are at such addresses, too.
    tls
        See `fetch_with`.
    """
    if tls is None and not is_loopback(address):
        _log.warning(
            "nodes send each other their tokens unencrypted, as this one has no --tls-certificate: "
            "whoever sees such a token can copy the store of a node until that node is restarted"
        )


def node_credentials(files: Mapping[str, Path | None]) -> grpc.ChannelCredentials | None:
    """Return the credentials of a node for calls of others; None without TLS.

    Parameters
    ----------
    files
        PEM files: `certificate` and `key` of this node, and `roots` that verify the other nodes, None for
        those of the system.

    Raises
    ------
    OSError
        If one cannot be read.
    """
    content = {name: None if path is None else path.read_bytes() for name, path in files.items()}
    if content["certificate"] is None:
        return None
    roots = system_roots() if content["roots"] is None else content["roots"]
    return grpc.ssl_channel_credentials(roots, content["key"], content["certificate"])
