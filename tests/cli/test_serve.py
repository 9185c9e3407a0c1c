"""`nearcast serve` as a process: settings, signals, crashes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import nearcast
from index.tables import growth
from nearcast import GeoObject, TopK

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
AREA = "--area=14,35,15,36"
COMMAND = [sys.executable, "-m", "cli"]


class Process:
    """A server process; the line on its standard output says where it is."""

    def __init__(self, *arguments, environment=None) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
        )
        line = self.line()
        assert line.startswith("serving on "), self._process.stderr.read()
        self.target = line.removeprefix("serving on ").strip()

    def line(self) -> str:
        """The next line on its standard output."""
        return self._process.stdout.readline()

    def threads(self, name) -> list[int]:
        tasks = Path(f"/proc/{self._process.pid}/task").iterdir()
        return [int(task.name) for task in tasks if (task / "comm").read_text().strip() == name]

    def reserved(self) -> bool:
        """Whether a part of its address space is as large as what is reserved for an array."""
        lines = Path(f"/proc/{self._process.pid}/maps").read_text().splitlines()
        spans = [[int(end, 16) for end in line.split()[0].split("-")] for line in lines]
        return any(end - start >= growth.affordable_bytes() for start, end in spans)

    def send(self, number) -> None:
        self._process.send_signal(number)

    def signal(self, number) -> int:
        self.send(number)
        _, self.output = self._process.communicate(timeout=600)
        return self._process.returncode


def refused(*arguments, environment=None, status=1, quiet=True) -> str:
    """What a command says on standard error that ends with a status: 1 failed, 2 was used wrongly."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == status, done.stderr
    assert not quiet or done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_nothing_heavy_is_imported_before_a_command_is_chosen():
    heavy = {"grpc", "google", "pydantic", "numpy", "numba", "pyspark", "matplotlib", "shapely"}
    program = f"import sys, cli.app; print(*{heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "\n"


@pytest.mark.parametrize("arguments", [[], ["serve"], ["simulate"], ["replay"], ["demo"]])
def test_help(arguments):
    done = subprocess.run(
        [*COMMAND, *arguments, "--help"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.startswith("Usage: ")
    assert done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(tmp_path, number):
    process = Process(AREA, "--port=0", f"--store={tmp_path / 's.db'}")
    assert process.signal(number) == 0


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="this system has no such policy")
async def test_a_hangup_does_not_stop_it():
    process = Process(AREA, "--port=0", "--store=:memory:")
    process.send(signal.SIGHUP)
    async with nearcast.connect(process.target) as client:
        await client.status()
    assert process.signal(signal.SIGTERM) == 0
    assert "reloads certificates and keys when they change" in process.output


async def test_without_a_reader_of_its_output_it_serves_and_ends_cleanly():
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, "serve", AREA, "--port=0", "--store=:memory:", "--metrics-port=0"]
    process = subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT)  # noqa: ASYNC220
    os.close(writer)
    with process:
        line = next(line for line in process.stderr if "serving on " in line)
        async with nearcast.connect(line.partition("serving on ")[2].partition(": ")[0]) as client:
            await client.status()
        process.terminate()
        assert "Exception" not in process.stderr.read()
    assert process.returncode == 0


def test_threads_of_grpc_do_not_interrupt_the_loop_that_they_work_for(tmp_path):
    process = Process(AREA, "--port=0", f"--store={tmp_path / 's.db'}")
    policies = {os.sched_getscheduler(thread) for thread in process.threads("event_engine")}
    assert process.signal(signal.SIGTERM) == 0
    assert policies == {os.SCHED_BATCH}


@pytest.mark.skipif(not growth.affordable_bytes(), reason="address space is counted or limited here")
async def test_room_is_reserved_for_large_arrays(tmp_path):
    process = Process(AREA, "--port=0", f"--store={tmp_path / 's.db'}")
    assert not process.reserved()
    words = frozenset(f"word{number}" for number in range(8))
    async with nearcast.connect(process.target) as client:
        await client.publisher().publish(GeoObject(words, 14.5, 35.5, 60.0) for _ in range(30_000))
    assert process.reserved()
    assert process.signal(signal.SIGTERM) == 0


async def test_flags_over_environment_over_file(tmp_path):
    config = tmp_path / "city.toml"
    config.write_text(
        f'area = [14.0, 35.0, 15.0, 36.0]\nport = 0\nstore = "{tmp_path / "file.db"}"\n'
        'tokens = ["from the file"]\nbuffer_extra = 5000\n'
    )
    environment = {"NEARCAST_BUFFER_EXTRA": "2", "NEARCAST_STORE": str(tmp_path / "environment.db")}
    process = Process(f"--config={config}", f"--store={tmp_path / 'flag.db'}", environment=environment)
    async with nearcast.connect(process.target, token="from the file") as client:  # noqa: S106
        await client.publisher().publish([GeoObject({"a"}, 14.5, 35.5, 60.0)])
    assert process.signal(signal.SIGTERM) == 0
    assert [path.name for path in sorted(tmp_path.glob("*.db"))] == ["flag.db"]


async def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path):
    arguments = (AREA, "--port=0", f"--store={tmp_path / 's.db'}")
    process = Process(*arguments)
    ids = []
    async with nearcast.connect(process.target) as client:
        device = await client.attach("d", lon=14.5, lat=35.5)
        await device.subscribe(TopK({"sushi"}, k=100))
        publisher = client.publisher()
        for i in range(50):
            ids += await publisher.publish([GeoObject({"sushi"}, 14.0 + 0.01 * i, 35.5, 3600.0)])
        await publisher.retract(ids[0])
        process.signal(signal.SIGKILL)
    process = Process(*arguments)
    try:
        async with nearcast.connect(process.target) as client:
            device = await client.attach("d", lon=14.5, lat=35.5)
            await client.sync()
            (subscription,) = device.subscriptions
            assert sorted(match.object.id for match in subscription.results()) == ids[1:]
            (later,) = await client.publisher().publish([GeoObject({"sushi"}, 14.5, 35.5, 60.0)])
            assert later > max(ids)
    finally:
        process.signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["replay", "tests"], "world.json is missing", 1),
        (["simulate", "--out=runs/none", "--devices=0"], "devices is 0, must be within 1..1000000", 2),
    ],
)
def test_wrong_settings_are_a_line_each(arguments, message, status):
    assert message in refused(*arguments, status=status)


def test_a_store_of_another_area_and_one_in_use(tmp_path):
    store = f"--store={tmp_path / 's.db'}"
    process = Process(AREA, "--port=0", store)
    assert "another server has it open" in refused("serve", AREA, "--port=0", store)
    assert process.signal(signal.SIGTERM) == 0
    assert "has the area (14.0, 35.0, 15.0, 36.0)" in refused(
        "serve", "--area=1,2,3,4", "--port=0", store
    )


@pytest.fixture
def tls_files(tmp_path):
    """A certificate of its own for city.example, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key]
    name = ["-days", "2", "-subj", "/CN=city.example", "-addext", "subjectAltName=DNS:city.example"]
    command = [openssl, "req", "-x509", *new_key, "-out", certificate, *name]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


async def test_tls(tls_files):
    certificate, key = tls_files
    files = (f"--tls-certificate={certificate}", f"--tls-key={key}")
    process = Process(AREA, "--port=0", "--store=:memory:", *files)
    try:
        tls = nearcast.Tls(certificate.read_bytes(), "city.example")
        async with nearcast.connect(process.target, tls=tls) as client:
            await client.publisher().publish([GeoObject({"a"}, 14.5, 35.5, 60.0)])
        async with nearcast.connect(process.target) as client:
            with pytest.raises(nearcast.UnavailableError):
                await client.status()
    finally:
        process.signal(signal.SIGTERM)
