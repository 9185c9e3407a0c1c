"""Files on any file system that Spark supports, which the driver accesses through Hadoop's API.

Tasks write through DataFrames, and read files of the job through Arrow, at the address that `resolved`
returns. Only this module uses Hadoop's classes. Paths without a scheme are on Spark's default file
system, which is the local one unless Hadoop's configuration sets another.

Tasks and other processes without a JVM read a file with `open_resolved`.

Operations: each takes a round trip to Spark's JVM, and the time of the file system.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

Where = Path | str
"""A path, or a URI with a scheme."""

_OWN_FOLDER, _OWN_FILE = "700", "600"
_WITHOUT_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP})
"""Errors of file systems without hard links."""
_PIECE_BYTES = 6_000
"""Bytes read in a round trip. Java sends them as text, in one packet up to 8,192 characters. A longer
text waits 40 ms for the acknowledgement of its first packet. This size gives 10 MB/s and more, which
larger pieces do not exceed.
"""


def open_resolved(uri: str) -> tuple[Any, str]:
    """Return the file system of Arrow and the path there, for a URI from `Stored.resolved`."""
    import pyarrow.fs  # noqa: PLC0415 - takes half a second, and most importers are drivers

    found: tuple[Any, str] = pyarrow.fs.FileSystem.from_uri(uri)
    return found


class StorageError(OSError):
    """An operation of a file system failed; the message names the file."""


class Stored:
    """A file or folder, which need not exist.

    Parameters
    ----------
    spark
        The session.
    where
        Path or URI of the file or folder.
    is_shared
        Whether files and folders that are written have the modes that Hadoop's umask gives; else they
        are for this user only. Also holds for the files below a folder.
    """

    def __init__(self, spark: SparkSession, where: Where, *, is_shared: bool = False) -> None:
        self._is_shared = is_shared
        context: Any = spark.sparkContext
        self._spark, self._jvm = spark, context._jvm  # noqa: SLF001 - the only access to Hadoop's classes
        self._configuration = context._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
        with self._failing(str(where)):
            path = self._jvm.org.apache.hadoop.fs.Path(str(where))
            self._system = path.getFileSystem(self._configuration)
            self._path = self._system.makeQualified(path)
        self.uri: str = self._path.toString()

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> Stored:
        return Stored(self._spark, f"{self.uri.rstrip('/')}/{name}", is_shared=self._is_shared)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return str(self._path.getName())

    def exists(self) -> bool:
        """Return whether the file or folder exists."""
        with self._failing(self.uri):
            return bool(self._system.exists(self._path))

    def is_folder(self) -> bool:
        """Return whether a folder exists at the path."""
        with self._failing(self.uri):
            return bool(self._system.exists(self._path)) and bool(
                self._system.getFileStatus(self._path).isDirectory()
            )

    def names(self) -> list[str]:
        """Return the sorted names in a folder, which must have no commas; empty if it does not exist."""
        if not self.exists():
            return []
        with self._failing(self.uri):
            filesystems = self._jvm.org.apache.hadoop.fs
            paths = filesystems.FileUtil.stat2Paths(self._system.listStatus(self._path))
            # One round trip for any number of names: {file:/a/b,file:/a/c}
            text: str = self._jvm.org.apache.commons.lang3.ArrayUtils.toString(paths)
        found = text.removeprefix("{").removesuffix("}").split(",")
        return sorted(uri.rpartition("/")[2] for uri in found if uri)

    def files(self) -> dict[str, int]:
        """Return the sizes of all files below a folder by relative path, sorted; empty without it."""
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
        """Open a file for random access, as Arrow needs for files that are larger than memory.

        Raises
        ------
        StorageError
            If the file does not exist or cannot be read; later reads raise it, too.
        """
        with self._failing(self.uri):
            size = int(self._system.getFileStatus(self._path).getLen())
            stream = self._system.open(self._path)
        return io.BufferedReader(_Reader(stream, size, partial(self._failing, self.uri)), _PIECE_BYTES)

    def read(self) -> bytes:
        """Return the contents of a file.

        Raises
        ------
        StorageError
            If the file does not exist or cannot be read.
        """
        with self._failing(self.uri):
            stream = self._system.open(self._path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def create(self, data: bytes) -> None:
        """Write a new file atomically.

        Raises
        ------
        StorageError
            If the file exists.
        """
        self._write(data, replaces=False)

    def replace(self, data: bytes) -> None:
        """Write a file atomically; replace an existing one."""
        self._write(data, replaces=True)

    def move(self, where: str) -> None:
        """Move a file to a free path on its file system.

        Raises
        ------
        StorageError
            If the path exists.
        """
        with self._failing(where):
            self._rename(self._path, self._jvm.org.apache.hadoop.fs.Path(where), replaces=False)

    def make_folder(self) -> None:
        """Create a folder and its parents. Leave an existing folder as it is."""
        if not self.exists():
            with self._failing(self.uri):
                self._system.mkdirs(self._path)
                if not self._is_shared:
                    self._system.setPermission(self._path, self._permission(_OWN_FOLDER))

    def remove(self) -> None:
        """Remove a file, or a folder with its contents, if it exists."""
        with self._failing(self.uri):
            self._system.delete(self._path, True)

    def resolved(self) -> str:
        """Return the URI of the file; for a file system that is a view, the URI on the one behind it."""
        with self._failing(self.uri):
            return str(self._system.resolvePath(self._path).toUri().toString())

    def _write(self, data: bytes, *, replaces: bool) -> None:
        self._make_parent()
        uri = self._path.toUri()
        if uri.getScheme() == "file":
            self._write_local(Path(uri.getPath()), data, replaces=replaces)
        else:
            self._write_by_hadoop(data, replaces=replaces)

    # -- local files ----------------------------------------------------------------------------------

    def _write_local(self, path: Path, data: bytes, *, replaces: bool) -> None:
        """Write a local file without Hadoop.

        Hadoop removes an old file before it moves the new one, and takes ten times as long for a new one.
        """
        temporary = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                if self._is_shared:
                    os.fchmod(file.fileno(), self._usual_mode())
                file.write(data)
            # Hadoop reads a file without a checksum, but not one whose checksum is that of the old file.
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            if replaces:
                temporary.replace(path)
            else:
                self._name_local(temporary, path)
        except BaseException as error:
            with suppress(OSError):
                temporary.unlink()
            if isinstance(error, OSError) and not isinstance(error, StorageError):
                raise StorageError(f"{self.uri}: {error.strerror}") from error
            raise

    def _name_local(self, temporary: Path, path: Path) -> None:
        """Give a file its name, if no file has it."""
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in _WITHOUT_LINKS:
                raise
            with self._failing(self.uri):
                self._rename(
                    self._jvm.org.apache.hadoop.fs.Path(temporary.as_uri()), self._path, replaces=False
                )
        else:
            temporary.unlink()

    # -- Hadoop's -------------------------------------------------------------------------------------

    def _make_parent(self) -> None:
        parent = self._path.getParent().toString()
        Stored(self._spark, parent, is_shared=self._is_shared).make_folder()

    def _write_by_hadoop(self, data: bytes, *, replaces: bool) -> None:
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
                if not self._is_shared:
                    self._system.setPermission(temporary, self._permission(_OWN_FILE))
                self._rename(temporary, self._path, replaces=replaces)
            except BaseException:
                self._system.delete(temporary, False)
                raise

    def _rename(self, path: Any, target: Any, *, replaces: bool) -> None:  # noqa: ANN401 - Hadoop's
        """Rename a file atomically."""
        filesystems = self._jvm.org.apache.hadoop.fs
        rename = getattr(filesystems, "Options$Rename")
        how = self._spark.sparkContext._gateway.new_array(rename, 1)  # type: ignore[union-attr]  # noqa: SLF001
        how[0] = rename.OVERWRITE if replaces else rename.NONE
        filesystems.FileContext.getFileContext(self._path.toUri(), self._configuration).rename(
            path, target, how
        )

    def _usual_mode(self) -> int:
        """Return the mode that Hadoop gives to a file."""
        permission = self._jvm.org.apache.hadoop.fs.permission.FsPermission
        umask = permission.getUMask(self._configuration)
        return int(permission.getFileDefault().applyUMask(umask).toShort())

    def _permission(self, mode: str) -> Any:  # noqa: ANN401 - Hadoop's
        return self._jvm.org.apache.hadoop.fs.permission.FsPermission(mode)

    @contextmanager
    def _failing(self, where: str) -> Iterator[None]:
        """Convert errors of Java to one that names the file."""
        try:
            yield
        except PySparkException as error:  # an error with a message of Spark
            raise StorageError(f"{where}: {error}") from error
        except Py4JJavaError as error:
            cause: Any = error.java_exception
            raise StorageError(
                f"{where}: {cause.getClass().getSimpleName()}: {cause.getMessage()}"
            ) from error


class _Reader(io.RawIOBase):
    """A stream of Hadoop as a file of Python.

    Parameters
    ----------
    stream
        The stream of Hadoop.
    size
        Size of the file in bytes.
    failing
        Converts errors of Java to `StorageError`.
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

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
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
