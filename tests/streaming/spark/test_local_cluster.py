"""A job on executors in JVMs of their own, with memory of their own: what a cluster has in small."""

import os
import subprocess
import sys

import pytest

from tests.cluster.audit import audited
from tests.cluster.feed import AREA, ZipfFeed, write_rows
from tests.support.spark_home import spark_home
from tests.support.stream_results import complete

WINDOW = 300
_MASTER = "local-cluster[2,1,1024]"


def run(folder, *more):
    """Run a job until it has read all, from a folder in which each executor has its own `memory`."""
    command = [sys.executable, "-m", "cli", "stream", "run", f"--master={_MASTER}", "--once"]
    command += [
        f"--{name}={folder / name}" for name in ("messages", "subscriptions", "out", "checkpoint")
    ]
    command += [f"--area={','.join(map(str, AREA))}", f"--window={WINDOW}", "--partitions=2"]
    command += ["--memory=memory", "--files-per-batch=1", "--driver-memory=512m", *more]
    (folder / "memory").mkdir(exist_ok=True)
    variables = {
        "SPARK_HOME": str(spark_home(folder)),  # workers of a local cluster write below it
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=1_200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_replicas_learn_from_owners_on_other_hosts(tmp_path):
    feed = ZipfFeed(1)
    write_rows(tmp_path / "messages", 0, "messages", feed.messages(WINDOW))
    write_rows(tmp_path / "subscriptions", 0, "subscriptions", feed.subscriptions(200))
    for number in range(1, 7):
        write_rows(tmp_path / "messages", number, "messages", feed.messages(50))
    run(tmp_path, "--mechanism=prefix")
    memories = [path for path in tmp_path.glob("spark/work/app-*/*/memory") if any(path.iterdir())]
    assert len(memories) == 2, "each executor has memory of its own"
    found = audited(tmp_path / "out", WINDOW, sample=200)
    assert found.wrong == []
    assert found.results > 1_000
    # The first batch is before any feedback; all later ones know what owners have sent.
    assert found.evaluated[0] == pytest.approx(1.0)
    assert max(found.evaluated[1:]) < 0.2
    assert len(found.evaluated) == 7
    # What comes behind the last messages has feedback to read, and none to write.
    assert len(complete(tmp_path / "out")) <= 8
