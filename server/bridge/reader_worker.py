"""The process that decodes the files of a feed. It receives open files, and returns rows.

Frames, each a letter and the length of the data: `R` rows as a record batch of Arrow's with the schema of
messages, `E` the reason why the file cannot be read, in our own words, and `D` that all has been read.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import struct

from feeds.bounds import UnreadableError
from server.bridge.chunk import described
from server.bridge.parquet_file import chunks

HEAD = struct.Struct("<cI")
ROWS, ERROR, DONE = b"R", b"E", b"D"
FILE = b"F"

_MEMORY_MAX = 4 * 1024**3
"""Memory limit of the process in bytes: reading a file takes less than half of that."""


def main(descriptor: int) -> None:
    """Read files until the server sends no more."""
    # A service manager may signal all processes of a service. This one ends when the server closes its
    # end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_MAX, _MEMORY_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=descriptor) as parent:
        _send(parent, DONE, b"")  # it has started
        while True:
            _, files, _, _ = socket.recv_fds(parent, len(FILE), 1)
            if not files:
                return
            with os.fdopen(files[0], "rb") as file:
                try:
                    for rows in chunks(file):
                        _send(parent, ROWS, rows.serialize().to_pybytes())
                except UnreadableError as error:
                    _send(parent, ERROR, str(error).encode())
                except (BrokenPipeError, ConnectionError):
                    return
                except Exception as error:  # noqa: BLE001 - any error of the libraries
                    _send(parent, ERROR, f"it cannot be read ({described(error)})".encode())
                else:
                    _send(parent, DONE, b"")


def _send(parent: socket.socket, kind: bytes, data: bytes) -> None:
    parent.sendall(HEAD.pack(kind, len(data)) + data)
