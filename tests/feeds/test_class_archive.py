import subprocess
import sys

import pytest

from feeds.class_archive import ArchiveError, archive_options, write_archive
from feeds.java import Java, find_java

pytestmark = pytest.mark.processes

_MAPPED = """
from pathlib import Path
from feeds.spark import spark_session
with spark_session("local[1]") as spark:
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    print(Path(f"/proc/{pid}/maps").read_text())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_spark_maps_the_archive():
    options = archive_options(find_java())
    if not options:
        pytest.skip("no archive here: nearcast compile --spark writes it")
    command = [sys.executable, "-c", _MAPPED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert options[0].partition("=")[2] in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("version", [17, 25])
def test_without_an_archive_there_are_no_options(tmp_path, version):
    assert archive_options(Java(tmp_path, version, "JAVA_HOME")) == []


def test_a_java_that_writes_no_archive_is_named(tmp_path, monkeypatch):
    executable = tmp_path / "java"
    executable.write_text(
        f"#!/bin/sh\necho '    java.home = {tmp_path}' >&2\n"
        "echo '    java.specification.version = 21' >&2\necho nothing is written\n"
    )
    executable.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("feeds.java.user_cache_path", lambda _name: tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(ArchiveError, match="Java 21 from PATH wrote no archive: "):
        write_archive()
    assert not list(tmp_path.glob("cache/**/classes-*"))
