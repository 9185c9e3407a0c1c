"""Files on any file system that Spark has, as the driver reads and writes them: through Hadoop's API.

What tasks write goes through DataFrames; what they read of the job's own files they read through Arrow,
at the address that `resolved` gives. This module is the only one that knows Hadoop's classes. Paths
without a scheme are what Spark takes them for: on the default file system, which is the local one unless
Hadoop's configuration says otherwise.

`open_resolved` is how tasks, and whatever else has no JVM at hand, read a file.

Operations: a round trip to Spark's JVM each, and what the file system takes.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

Where = Path | str
"""A path, or a URI with a scheme."""

_OWN_FOLDER, _OWN_FILE = "700", "600"
_PIECE_BYTES = 6_000
"""Read in a round trip. Java sends it as text, as one packet up to 8,192 characters: what is longer waits
40 ms for the acknowledgement of its first. So it is 10 MB/s and more, which larger pieces do not exceed.
"""


def open_resolved(uri: str) -> tuple[Any, str]:
    """Return Arrow's file system and path of a URI that `Stored.resolved` has given."""
    import pyarrow.fs  # noqa: PLC0415 - half a second, and most who import this module are drivers

    found: tuple[Any, str] = pyarrow.fs.FileSystem.from_uri(uri)
    return found


class StorageError(OSError):
    """A file system does not do what it is asked to; the message names the file."""


class Stored:
    """A file or folder, which need not be there.

    Parameters
    ----------
    spark
        The session.
    where
        Its path or URI.
    """

    def __init__(self, spark: SparkSession, where: Where) -> None:
        context: Any = spark.sparkContext
        self._spark, self._jvm = spark, context._jvm  # noqa: SLF001 - the way to Hadoop's classes
        self._configuration = context._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
        with self._failing(str(where)):
            path = self._jvm.org.apache.hadoop.fs.Path(str(where))
            self._system = path.getFileSystem(self._configuration)
            self._path = self._system.makeQualified(path)
        self.uri: str = self._path.toString()

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> Stored:
        return Stored(self._spark, f"{self.uri.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return str(self._path.getName())

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        with self._failing(self.uri):
            return bool(self._system.exists(self._path))

    def is_folder(self) -> bool:
        """Whether there is a folder."""
        with self._failing(self.uri):
            return bool(self._system.exists(self._path)) and bool(
                self._system.getFileStatus(self._path).isDirectory()
            )

    def names(self) -> list[str]:
        """Return the names of what a folder has, in order, of which none has a comma; without it none."""
        if not self.exists():
            return []
        with self._failing(self.uri):
            filesystems = self._jvm.org.apache.hadoop.fs
            paths = filesystems.FileUtil.stat2Paths(self._system.listStatus(self._path))
            # In one round trip, however many: {file:/a/b,file:/a/c}
            text: str = self._jvm.org.apache.commons.lang3.ArrayUtils.toString(paths)
        found = text.removeprefix("{").removesuffix("}").split(",")
        return sorted(uri.rpartition("/")[2] for uri in found if uri)

    def files(self) -> dict[str, int]:
        """Return the size of each file below a folder, by its path in it, in order; without it none."""
        if not self.exists():
            return {}
        found = {}
        with self._failing(self.uri):
            statuses = self._system.listFiles(self._path, True)
            while statuses.hasNext():
                status = statuses.next()
                path = status.getPath().toString().removeprefix(self.uri).lstrip("/")
                found[path] = int(status.getLen())
        return dict(sorted(found.items()))

    def opened(self) -> io.BufferedReader:
        """Return a file to read from anywhere in it, as Arrow does with what is larger than memory.

        Raises
        ------
        StorageError
            If there is none, or it cannot be read; also while it is read.
        """
        with self._failing(self.uri):
            size = int(self._system.getFileStatus(self._path).getLen())
            stream = self._system.open(self._path)
        return io.BufferedReader(_Reader(stream, size, partial(self._failing, self.uri)), _PIECE_BYTES)

    def read(self) -> bytes:
        """Return what a file has.

        Raises
        ------
        StorageError
            If there is none, or it cannot be read.
        """
        with self._failing(self.uri):
            stream = self._system.open(self._path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def create(self, data: bytes) -> None:
        """Write a file that is not there yet: whole, or not at all.

        Raises
        ------
        StorageError
            If it is there.
        """
        self._write(data, replaces=False)

    def replace(self, data: bytes) -> None:
        """Write a file in place of what is there, if anything: whole, or not at all."""
        self._write(data, replaces=True)

    def move(self, where: str) -> None:
        """Give a file another path of its file system, where nothing is.

        Raises
        ------
        StorageError
            If something is there.
        """
        with self._failing(where):
            self._rename(self._path, self._jvm.org.apache.hadoop.fs.Path(where), replaces=False)

    def make_folder(self) -> None:
        """Make a folder for this user alone, and those above it; one that is there stays as it is."""
        if not self.exists():
            with self._failing(self.uri):
                self._system.mkdirs(self._path)
                self._system.setPermission(self._path, self._permission(_OWN_FOLDER))

    def remove(self) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""
        with self._failing(self.uri):
            self._system.delete(self._path, True)

    def resolved(self) -> str:
        """Return the URI at which the file lies: on the file system behind, of one that is a view."""
        with self._failing(self.uri):
            return str(self._system.resolvePath(self._path).toUri().toString())

    # -- Hadoop's -------------------------------------------------------------------------------------

    def _write(self, data: bytes, *, replaces: bool) -> None:
        parent = Stored(self._spark, self._path.getParent().toString())
        parent.make_folder()
        temporary = self._jvm.org.apache.hadoop.fs.Path(
            self._path.getParent(), f".{self.name}-{secrets.token_hex(6)}"
        )
        with self._failing(self.uri):
            try:
                stream = self._system.create(temporary, False)
                try:
                    stream.write(bytearray(data))
                finally:
                    stream.close()
                self._system.setPermission(temporary, self._permission(_OWN_FILE))
                self._rename(temporary, self._path, replaces=replaces)
            except BaseException:
                self._system.delete(temporary, False)
                raise

    def _rename(self, path: Any, target: Any, *, replaces: bool) -> None:  # noqa: ANN401 - Hadoop's
        """Give a file its name, at once for all who look."""
        filesystems = self._jvm.org.apache.hadoop.fs
        rename = getattr(filesystems, "Options$Rename")
        how = self._spark.sparkContext._gateway.new_array(rename, 1)  # type: ignore[union-attr]  # noqa: SLF001
        how[0] = rename.OVERWRITE if replaces else rename.NONE
        filesystems.FileContext.getFileContext(self._path.toUri(), self._configuration).rename(
            path, target, how
        )

    def _permission(self, mode: str) -> Any:  # noqa: ANN401 - Hadoop's
        return self._jvm.org.apache.hadoop.fs.permission.FsPermission(mode)

    @contextmanager
    def _failing(self, where: str) -> Iterator[None]:
        """Turn errors of Java into one that names the file."""
        try:
            yield
        except PySparkException as error:  # what Spark has words of its own for
            raise StorageError(f"{where}: {error}") from error
        except Py4JJavaError as error:
            cause: Any = error.java_exception
            raise StorageError(
                f"{where}: {cause.getClass().getSimpleName()}: {cause.getMessage()}"
            ) from error


class _Reader(io.RawIOBase):
    """A stream of Hadoop's as Python's files are.

    Parameters
    ----------
    stream
        Which.
    size
        Of the file.
    failing
        Turns errors of Java into ours.
    """

    def __init__(
        self,
        stream: Any,  # noqa: ANN401 - Hadoop's
        size: int,
        failing: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__()
        self._stream, self._size, self._failing = stream, size, failing
        self._at = self._stream_at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever has bytes
        count = min(len(buffer), self._size - self._at, _PIECE_BYTES)
        if count <= 0:
            return 0
        with self._failing():
            if self._at != self._stream_at:
                self._stream.seek(self._at)
            data = bytes(self._stream.readNBytes(count))
        buffer[: len(data)] = data
        self._at = self._stream_at = self._at + len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            with self._failing():
                self._stream.close()
        super().close()
