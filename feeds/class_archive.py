"""Keep an archive of Spark's classes, which Java maps into memory instead of loading and linking them.

`write_archive` runs a few operations of Spark in another process (`feeds.archive_training`) and has Java
write the archive at the end of it. `archive_options` returns the options that make a Java process use the
archive. A process that cannot use it (another Java, another Spark) ignores it.

Java 25 and newer write an AOT cache (JEP 514), and older versions a dynamic class data archive (JEP 350).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from feeds.java import Java, find_java

AOT_VERSION_MIN = 25
"""From this version of Java on, the archive is an AOT cache."""

_TRAINING_TIMEOUT_S = 600.0

_KEPT_S = 30 * 86_400.0
"""An archive of another installation of Spark is removed after this time."""

_QUIET = "-Xlog:cds*=off"
"""Java writes a warning to standard output for each part of an archive that it cannot use."""


class ArchiveError(RuntimeError):
    """Java wrote no archive; the message has the end of its output."""


def archive_options(java: Java) -> list[str]:
    """Return the options with which a Java process uses the archive; none if there is no archive."""
    archive = _archive(java)
    if not archive.is_file():
        return []
    if java.version >= AOT_VERSION_MIN:
        return [f"-XX:AOTCache={archive}", "-Xlog:aot*=off", _QUIET]
    return [f"-XX:SharedArchiveFile={archive}", _QUIET]


def write_archive() -> Path:
    """Write the archive for the Java runtime and the Spark of this environment; replace an older one.

    Costs about a minute of one core, and 200 MB of disk.

    Returns
    -------
    Path
        The archive's file, below the user's cache folder.

    Raises
    ------
    JavaNotFoundError
        If there is no Java runtime.
    ArchiveError
        If Java wrote no archive.
    """
    java = find_java()
    archive = _archive(java)
    for old in archive.parent.glob("classes-*"):
        if old == archive or time.time() - old.stat().st_mtime > _KEPT_S:
            old.unlink()
    # The draft is on the same file system, so that moving it is atomic.
    with tempfile.TemporaryDirectory(prefix="draft-", dir=archive.parent) as folder:
        draft = Path(folder) / archive.name
        output = _train(java, draft)
        if not draft.is_file():
            name = f"Java {java.version} from {java.source}"
            raise ArchiveError(f"{name} wrote no archive: {output[-2000:]}")
        draft.replace(archive)
    return archive


def _archive(java: Java) -> Path:
    """Return the file of the archive for a Java runtime and the installed Spark."""
    spark = importlib.util.find_spec("pyspark")
    where = str(spark.origin if spark else "")
    key = hashlib.sha256(f"{java.version} {where}".encode()).hexdigest()[:16]
    return java.home / f"classes-{key}"


def _train(java: Java, draft: Path) -> str:
    """Run the training in a process whose Java writes the archive when it ends; return the output."""
    option = "AOTCacheOutput" if java.version >= AOT_VERSION_MIN else "ArchiveClassesAtExit"
    # Spark's launcher adds these options to the driver's.
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": f"-XX:{option}={draft}"}
    done = subprocess.run(
        [sys.executable, "-m", "feeds.archive_training"],
        env=environment,
        cwd=Path(__file__).resolve().parent.parent,
        # Java inherits these pipes: the call returns when Java has ended as well.
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TRAINING_TIMEOUT_S,
        check=False,
    )
    return done.stdout
