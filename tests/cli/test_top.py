"""`nearcast top` and `nearcast inspect`: what they show of a server, and how they fail."""

from __future__ import annotations

import json
import signal
import subprocess
from io import StringIO
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

import nearcast
from cli.top_frame import History, Sample
from nearcast import Distribution, GeoObject, ServerState, ServerStatus, TopK
from tests.cli.test_serve import AREA, COMMAND, ROOT, Process


def run(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)


def text_of(history):
    console = Console(width=110, record=True, file=StringIO())
    console.print(history.frame("here"))
    return console.export_text()


def status(reports, counts=(0, 0, 0), **gauges):
    latencies = Distribution((64.0, 2048.0, float("inf")), counts, sum(counts))
    names = ("delta_delay_ms", "publication_us", "commit_us", "retrieval_us", "evaluation_us")
    empty = Distribution((1.0, float("inf")), (0, 0), 0)
    return ServerStatus(
        ServerState.SERVING,
        1_000,
        {"devices.IN_SYNC": 7, "commands_waiting": 0, **gauges},
        {"reports_accepted": reports, "rejected.TOO_MANY": reports // 10},
        {},
        {"report_latency_us": latencies, **dict.fromkeys(names, empty)},
    )


def shown(history, name):
    """The words behind a name in the frame."""
    line = next(line for line in text_of(history).splitlines() if f" {name} " in line)
    return line[line.index(name) + len(name) :].split()


def test_rates_and_latencies_are_of_the_last_interval():
    history = History()
    history.add(Sample(10.0, status(100, (1_000, 0, 0))))
    assert not history.is_ready
    history.add(Sample(12.0, status(300, (1_000, 100, 0))))
    assert history.rates()["reports"] == 100.0
    assert history.rates()["rejected"] == 10.0
    assert shown(history, "reports")[0] == "100.0"
    assert shown(history, "report to answer")[:2] == ["2.05", "2.05"], "of what has come since"
    assert shown(history, "IN_SYNC")[0] == "7"


def test_after_a_restart_rates_begin_anew():
    history = History()
    history.add(Sample(10.0, status(100)))
    history.add(Sample(11.0, status(5)))
    assert history.rates() == {}
    history.add(Sample(12.0, status(6)))
    assert history.rates()["reports"] == 1.0


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    process = Process(AREA, "--port=0", f"--store={tmp_path_factory.mktemp('store') / 's.db'}")
    yield process
    assert process.signal(signal.SIGTERM) == 0


async def test_one_frame_and_a_picture_of_it(process, tmp_path):
    picture = tmp_path / "top.svg"
    async with nearcast.connect(process.target) as client:
        await (await client.attach("d", lon=14.5, lat=35.5)).subscribe(TopK({"a"}))
        done = run("top", f"--server={process.target}", "--once", "--interval-s=0.1", f"--svg={picture}")
    assert done.returncode == 0, done.stderr
    assert "SERVING" in done.stdout
    assert "IN_SYNC" in done.stdout
    assert ET.parse(picture).getroot().tag.endswith("svg")  # noqa: S314 - ours


@pytest.mark.parametrize(
    "command", ["top --once --server localhost:1", "inspect device d --server localhost:1"]
)
def test_no_server(command):
    done = run(*command.split())
    assert done.returncode == 1
    assert done.stderr.startswith("Error: UNAVAILABLE")
    assert done.stdout == ""


async def test_what_inspect_prints(process):
    async with nearcast.connect(process.target) as client:
        ids = await client.publisher().publish(
            [GeoObject({"a"}, 14.5, 35.5, 60.0, payload=b"secret"), GeoObject({"b"}, 14.5, 35.5, 60.0)]
        )
        subscription = await (await client.attach("e", lon=14.5, lat=35.5)).subscribe(TopK({"a"}))
        where = f"--server={process.target}"
        device = run("inspect", "device", "e", where).stdout
        name = ("inspect", "subscription", "e", str(subscription.id))
        held = run(*name, f"--object={ids[0]}", where).stdout
        other = run(*name, f"--object={ids[1]}", where, "--json").stdout
        item = run("inspect", "object", str(ids[0]), where).stdout
        unknown = run("inspect", "device", "nobody", where)
    assert device.startswith("device e: IN_SYNC\n")
    assert f"subscription {subscription.id}: top_k, ANCHORED, awake" in device
    assert f"object {ids[0]}: HELD, the device holds it" in held
    assert "reach inf m" in held
    assert json.loads(other)["judgement"]["verdict"] == "VERDICT_NO_COMMON_KEYWORD"
    assert f"    e {subscription.id}\n" in item
    assert "payload 6 bytes" in item
    assert "secret" not in item
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("Error: device_id is 'nobody', must be ")
