"""Reads the files of a feed in a separate process.

The library that decodes them is large, and not designed for untrusted input: one flipped bit in the
footer of a file can make it end its process, so it does not run in the server's. A reader that ends, or
takes too long, costs the file that it was reading, and the next file starts another reader.
"""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from feeds.bounds import BYTES_AT_ONCE_MAX, UnreadableError
from feeds.schemas import MESSAGES
from server.bridge.reader_worker import DONE, ERROR, FILE, HEAD, ROWS

_FRAME_S = 300.0
"""How long the next rows of a file may take, including all checks before the first ones."""

_FRAME_BYTES_MAX = 4 * BYTES_AT_ONCE_MAX
_REASON_BYTES_MAX = 1_000

WORKER = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from server.bridge.reader_worker import main; main(int(sys.argv[1]))"
)


class Worker(NamedTuple):
    """A process that reads files, and the socket to it: it ends when the socket is closed."""

    process: subprocess.Popen[bytes]
    socket: socket.socket


class FileReader:
    """A process that is started when there is a file to read. Not for two threads at once."""

    def __init__(self) -> None:
        self.worker: Worker | None = None
        """The process, if one was started."""
        self._is_closed = False

    def chunks(self, file: BinaryIO) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a Parquet file, as `parquet_file.chunks` does.

        Raises
        ------
        UnreadableError
            If it cannot be read, or ends its reader.
        OSError
            If no process can be started, or it was closed meanwhile.
        """
        worker = self._started().socket
        is_done = False
        try:
            socket.send_fds(worker, [FILE], [file.fileno()])
            while True:
                kind, data = _frame(worker)
                if kind == ROWS:
                    yield pa.ipc.read_record_batch(pa.py_buffer(data), MESSAGES)
                    continue
                is_done = True
                if kind == DONE:
                    return
                raise UnreadableError(data[:_REASON_BYTES_MAX].decode("utf-8", "replace"))
        except (EOFError, OSError) as error:
            if self._is_closed:  # not because of the file
                raise InterruptedError(errno.EINTR, "the source was closed") from None
            if isinstance(error, TimeoutError):
                raise UnreadableError(f"its reader did not respond for {_FRAME_S:g} s") from None
            raise UnreadableError("the reader process terminated while it read the file") from None
        finally:
            if not is_done:
                self._end()

    def close(self) -> None:
        """End the process for good. A concurrent read is interrupted."""
        self._is_closed = True
        self._end()

    def _end(self) -> None:
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.socket.close()
            worker.process.kill()
            worker.process.wait()

    def _started(self) -> Worker:
        """Return the process; start one if there is none."""
        if self.worker is not None and self.worker.process.poll() is None:
            return self.worker
        self._end()
        own, its = socket.socketpair()
        own.settimeout(_FRAME_S)
        command = [sys.executable, "-c", WORKER, str(its.fileno()), *sys.path]
        try:
            with its:
                process = subprocess.Popen(  # noqa: S603 - this very program
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[its.fileno()],
                    start_new_session=True,
                )
            self.worker = Worker(process, own)
            _frame(own)
        except (EOFError, OSError) as error:
            own.close()
            self._end()
            raise BlockingIOError(errno.EAGAIN, "the reader process cannot be started") from error
        if self._is_closed:  # meanwhile, by another thread
            self._end()
            raise InterruptedError(errno.EINTR, "the source ends")
        return self.worker


def _frame(worker: socket.socket) -> tuple[bytes, bytes]:
    kind, length = HEAD.unpack(_exactly(worker, HEAD.size))
    if kind not in (ROWS, ERROR, DONE) or length > _FRAME_BYTES_MAX:
        raise EOFError
    return kind, _exactly(worker, length)


def _exactly(worker: socket.socket, count: int) -> bytes:
    found = bytearray(count)
    view, at = memoryview(found), 0
    while at < count:
        more = worker.recv_into(view[at:])
        if not more:
            raise EOFError
        at += more
    return bytes(found)
