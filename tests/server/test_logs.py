"""Logs and metrics say nothing of what devices and publishers send, and are lines that programs read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import grpc
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast
from feeds.schemas import MESSAGES
from nearcast import Boolean, Circle, GeoObject, NearcastError, TopK
from server.errors import StoreError
from server.monitoring.logs import JsonFormatter, TextFormatter, record_text
from tests.cli.test_serve import AREA, COMMAND, ROOT

TOKEN = "a-token-that-nobody-may-read"  # noqa: S105
WRONG = "another-token-that-nobody-may-read"
PAYLOAD = b"a payload that nobody may read"
LON, LAT = 14.5234567, 35.4876543
FAR_LON, FAR_LAT = 77.7654321, -12.3456789
SOURCE_LON = 88.1234567

SECRETS = ("14.5234", "35.4876", "77.7654", "12.3456", "88.1234", "that-nobody-may", "that nobody may")
"""Beginnings of what was sent: a number may be rounded."""


def logging_modules():
    """Return the modules of the product that write to the log, relative to the project's folder."""
    paths = (path.relative_to(ROOT) for path in Path(ROOT).glob("[a-z]*/**/*.py"))
    own = (path for path in paths if path.parts[0] not in ("tests", "build", "examples", "clients"))
    return [path for path in own if "getLogger(" in (ROOT / path).read_text()]


@contextlib.asynccontextmanager
async def process(*flags):
    """A server that logs all it can; yields its address, that of its metrics, and what it has written."""
    written = []
    server = await asyncio.create_subprocess_exec(
        *(*COMMAND, "serve", AREA, "--port=0", "--metrics-port=0", "--log-level=DEBUG", *flags),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env={**os.environ, "PYTHONASYNCIODEBUG": "0"},
        limit=1 << 24,
    )
    output = {}

    async def read():
        async for line in server.stdout:
            text = line.decode()
            written.append(text)
            for name in ("serving on ", "metrics on "):
                if text.startswith(name):
                    output[name] = text.removeprefix(name).strip()
            if len(output) == 2:
                is_ready.set()

    is_ready = asyncio.Event()
    reading = asyncio.create_task(read())
    async with asyncio.timeout(60):
        await is_ready.wait()
    try:
        yield output["serving on "], output["metrics on "], written
    finally:
        server.send_signal(signal.SIGTERM)
        await server.wait()
        await reading


async def load(address):
    """All that is done to a server, right and wrong."""
    async with nearcast.connect(address, token=TOKEN) as client:
        publisher = client.publisher()
        await publisher.publish([GeoObject({"tea"}, LON, LAT, 60.0, payload=PAYLOAD) for _ in range(50)])
        async with client.fleet() as fleet:
            for i in range(10):
                device = await fleet.attach(f"d{i}", lon=LON, lat=LAT)
                await device.subscribe(TopK({"tea"}, k=3))
                await device.subscribe(Boolean("tea", Circle(500.0), moving=True))
                await device.move(lon=LON + 0.1, lat=LAT)
            await client.sync()
            await client.inspect("d0", 1, 1)
            with pytest.raises(NearcastError):
                await publisher.publish([GeoObject({"tea"}, FAR_LON, FAR_LAT, 60.0)])
            with pytest.raises(NearcastError):
                await client.search(TopK({"tea"}), lon=FAR_LON * 10, lat=LAT)
    for token in (WRONG, None):
        async with nearcast.connect(address, token=token) as client:
            with pytest.raises(NearcastError):
                await client.status()
    async with grpc.aio.insecure_channel(address) as channel:
        for method in ("DeviceService/Search", "ControlService/Status"):
            call = channel.unary_unary(f"/nearcast.v1.{method}")
            with pytest.raises(grpc.aio.AioRpcError):
                await call(b"\xff" + PAYLOAD, metadata=(("authorization", f"Bearer {WRONG}"),))


def bad_rows(folder):
    """A file of the source with an object that is nowhere."""
    row = dict.fromkeys(MESSAGES.names)
    row |= {"action": "publish", "object_id": 1, "time_ms": 1, "keywords": ["tea"]}
    row |= {"lon": SOURCE_LON, "lat": LAT, "payload": PAYLOAD}
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist([row], schema=MESSAGES), folder / "1.parquet")


@pytest.mark.processes
async def test_data_of_callers_gets_into_no_log_and_no_metric(tmp_path):
    bad_rows(tmp_path / "source")
    flags = ("--log-format=json", f"--dev-token={TOKEN}", f"--source={tmp_path / 'source'}")
    async with process(*flags, f"--store={tmp_path / 's.db'}") as (address, metrics, written):
        await load(address)
        for _ in range(1_200):
            if any("refused rows" in line for line in written):
                break
            await asyncio.sleep(0.05)
        with await asyncio.to_thread(urlopen, metrics) as response:
            scraped = response.read().decode()
    lines = "".join(written)
    assert "refused rows" in lines
    assert "nearcast_source_refused_total 1.0" in scraped
    for secret in SECRETS:
        assert secret not in lines
        assert secret not in scraped
    entries = [json.loads(line) for line in written if line.startswith("{")]
    assert len(entries) == len(written) - 2, "all lines except those with the addresses"
    for one in entries:
        assert set(one) >= {"time", "level", "logger", "message"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", one["time"])
    assert [one["message"] for one in entries][-1] == "stopped"


def entry(error, name="asyncio", message="Task exception was never retrieved\nfuture: {error!r}"):
    """An entry as asyncio makes it."""
    try:
        raise error  # noqa: TRY301
    except Exception:  # noqa: BLE001 - whatever it is
        text = message.format(error=error)
        return logging.LogRecord(name, logging.ERROR, "here", 1, text, (), sys.exc_info())


@pytest.mark.parametrize("package", sorted({path.parts[0] for path in logging_modules()}))
def test_messages_of_all_packages_are_whole(package):
    """Other libraries may log data of a caller from the second line of a message on."""
    record = logging.makeLogRecord({"name": f"{package}.module", "msg": "first\nsecond"})
    assert record_text(record) == "first\nsecond"
    record.name = f"{package}_of_others"
    assert record_text(record) == "first"


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_an_unexpected_error_is_logged_with_type_and_place(formatter):
    line = formatter.format(entry(ValueError(f"lon is {LON}")))
    assert "ValueError" in line
    assert "test_logs.py" in line
    assert "Task exception was never retrieved" in line
    assert str(LON) not in line
    line = formatter.format(entry(StoreError("store s.db is full"), "server.main", "it {error}"))
    assert line.count("store s.db is full") == 2


@pytest.mark.processes
def test_an_error_that_ends_the_process_is_an_entry_too():
    program = (
        "from server.monitoring.logs import begin_logging\n"
        "begin_logging('INFO', 'json')\n"
        f"raise ValueError('lon is {LON}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 1
    found = json.loads(done.stderr)
    assert (found["level"], found["error"]) == ("CRITICAL", "ValueError")
    assert str(LON) not in done.stderr
