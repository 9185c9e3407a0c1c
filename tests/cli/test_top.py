"""`nearcast top`, `inspect` and `forget`: what they show of a server, and how they fail."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from io import StringIO
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from rich.console import Console

import nearcast
from cli.app import app
from cli.top_frame import History, Sample
from nearcast import (
    Boolean,
    Circle,
    Distribution,
    GeoObject,
    RefusedError,
    ServerState,
    ServerStatus,
    SubscriptionState,
    TopK,
)
from tests.cli.test_serve import AREA, COMMAND, ROOT, Process


def run(*arguments, stdin=None):
    return subprocess.run(
        [*COMMAND, *arguments], input=stdin, capture_output=True, text=True, check=False, cwd=ROOT
    )


def on_a_terminal(answer, *arguments):
    """Run a command whose input is a terminal on which somebody has typed an answer."""
    typed, terminal = os.openpty()
    try:
        os.write(typed, f"{answer}\n".encode())
        return subprocess.run(
            [*COMMAND, *arguments], stdin=terminal, capture_output=True, text=True, check=False, cwd=ROOT
        )
    finally:
        os.close(typed)
        os.close(terminal)


def text_of(history):
    console = Console(width=110, record=True, file=StringIO())
    console.print(history.frame("here"))
    return console.export_text()


def status(reports, counts=(0, 0, 0), **gauges):
    latencies = Distribution((64.0, 2048.0, float("inf")), counts, sum(counts))
    names = ("delta_delay_ms", "publication_us", "commit_us", "retrieval_us", "slice_us", "evaluation_us")
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
    assert shown(history, "report to response")[:2] == ["2.05", "2.05"], "of what has come since"
    assert shown(history, "IN_SYNC")[0] == "7"


def test_rates_start_again_after_a_restart():
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


@pytest.mark.processes
async def test_one_frame_and_a_picture_of_it(process, tmp_path):
    picture = tmp_path / "top.svg"
    async with nearcast.connect(process.target) as client:
        await (await client.attach("d", lon=14.5, lat=35.5)).subscribe(TopK({"a"}))
        done = run("top", f"--server={process.target}", "--once", "--interval-s=0.1", f"--svg={picture}")
    assert done.returncode == 0, done.stderr
    assert "SERVING" in done.stdout
    assert "IN_SYNC" in done.stdout
    assert ET.parse(picture).getroot().tag.endswith("svg")  # noqa: S314 - ours


@pytest.mark.processes
def test_a_picture_that_cannot_be_written(process, tmp_path):
    absent = tmp_path / "nodir" / "top.svg"
    done = run("top", "--server=localhost:1", "--once", f"--svg={absent}")
    expected = f"Error: --svg is {absent}, must be in a folder that exists\n"
    assert (done.returncode, done.stderr) == (2, expected)
    link = tmp_path / "link.svg"
    link.symlink_to(absent)
    done = run("top", f"--server={process.target}", "--once", "--interval-s=0.1", f"--svg={link}")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        f"Error: --svg {link} cannot be written: No such file or directory",
    )


@pytest.mark.processes
def test_without_a_response_a_picture_stays_as_it_is(tmp_path):
    picture = tmp_path / "top.svg"
    picture.write_text("of yesterday", encoding="utf-8")
    done = run("top", "--once", "--server=localhost:1", f"--svg={picture}")
    assert done.returncode == 1
    assert picture.read_text(encoding="utf-8") == "of yesterday"


@pytest.mark.processes
@pytest.mark.parametrize(
    "command", ["top --once --server localhost:1", "inspect device d --server localhost:1"]
)
def test_no_server(command):
    done = run(*command.split())
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the server cannot be reached: UNAVAILABLE")
    assert done.stdout == ""


@pytest.mark.processes
async def test_output_of_inspect(process):
    async with nearcast.connect(process.target) as client:
        ids = await client.publisher().publish(
            [
                GeoObject({"a", "live music"}, 14.5, 35.5, 60.0, payload=b"secret", key="shop-1"),
                GeoObject({"b"}, 14.5, 35.5, 60.0),
            ]
        )
        attached = await client.attach("e", lon=14.5, lat=35.5)
        subscription = await attached.subscribe(TopK({"a"}))
        await attached.subscribe(Boolean('a AND NOT b OR "live music"', Circle(900.0), moving=True))
        where = f"--server={process.target}"
        device = run("inspect", "device", "e", where).stdout
        name = ("inspect", "subscription", "e", str(subscription.id))
        held = run(*name, f"--object={ids[0]}", where).stdout
        assert run(*name, "--key=shop-1", where).stdout == held
        other = run(*name, f"--object={ids[1]}", where, "--json").stdout
        whole = run("inspect", "device", "e", "--all", where).stdout
        exported = json.loads(run("inspect", "device", "e", "--all", "--json", where).stdout)
        none = run("inspect", "subscription", "e", "7", where).stderr
        item = run("inspect", "object", "--key=shop-1", where).stdout
        unknown = run("inspect", "device", "nobody", where)
    assert device.startswith("device e: IN_SYNC, attached and up to date\n")
    assert "of silence\n" in device
    assert f"subscription {subscription.id}: top-k, evaluated\n" in device
    assert "the 10 best objects with any of the keywords: a\n" in device
    assert "alpha 0.5, similarity jaccard, distance scale the diagonal of the service area\n" in device
    assert 'all objects that match: (a AND NOT b) OR "live music"\n' in device
    assert "range: 900.0 m, moves with the device\n" in device
    assert f"object {ids[0]}: HELD, the device holds it" in held
    assert "anchor lon 14.500000, lat 35.500000" in held
    assert "reach: without a bound, the device holds every object that has one of the keywords\n" in held
    assert '  1  shop-1  a "live music"  14.500000  35.500000' in held
    for text in ("inf", "object 0"):
        assert text not in held
    assert held.splitlines()[0] in whole
    assert '  1  shop-1  a "live music"  14.500000  35.500000' in whole
    assert 'all objects that match: (a AND NOT b) OR "live music"\n' in whole
    assert [[item["key"] for item in one["held"]] for one in exported["subscriptions"]] == [
        ["shop-1"]
    ] * 2
    assert none == "Error: subscription_id is 7, must be a subscription of the device: it has 1, 2\n"
    judged = json.loads(other, parse_constant=pytest.fail)["judgement"]
    assert judged["verdict"] == "VERDICT_NO_COMMON_KEYWORD"
    assert '"Infinity"' in other
    assert item.startswith(f"object {ids[0]}, key 'shop-1': a \"live music\"\n")
    assert f"    device e, {subscription.id}\n" in item
    assert "payload 6 bytes" in item
    assert "secret" not in item
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("Error: device_id is 'nobody', must be ")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("inspect object", "Give OBJECT_ID or --key KEY."),
        ("inspect object 1 --key=a", "Give OBJECT_ID or --key KEY."),
        ("inspect subscription e 1 --object=1 --key=a", "Give --object or --key, not both."),
        ("inspect object 99999999999999999999", "is not in the range"),
    ],
)
def test_wrong_arguments_of_inspect(arguments, text):
    done = run(*arguments.split())
    assert done.returncode == 2
    assert text in done.stderr


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["device", ""], "DEVICE_ID"),
        (["object", "--key", ""], "--key"),
        (["subscription", "", "1"], "DEVICE_ID"),
        (["subscription", "e", "1", "--key", ""], "--key"),
    ],
)
def test_an_empty_name_is_refused_by_inspect(arguments, name):
    done = CliRunner().invoke(app, ["inspect", *arguments, "--server=localhost:1"])
    assert done.exit_code == 2
    assert f"Invalid value for '{name}': '' must have at least 1 character" in done.stderr


@pytest.mark.processes
def test_forget_without_a_terminal_requires_the_option():
    done = run("forget", "device", "car-7", "--server=localhost:1", stdin="y\n")
    expected = "Error: there is no terminal to ask on: --yes is absent, must be given to confirm\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


@pytest.mark.processes
@pytest.mark.parametrize("arguments", [(), ("--tls",)])
def test_forget_reports_a_server_that_is_absent_as_other_commands_do(arguments):
    where = ("--server=localhost:1", *arguments)
    forgetting = run("forget", "device", "car-7", "--yes", *where)
    inspecting = run("inspect", "device", "car-7", *where)
    assert (forgetting.returncode, forgetting.stderr) == (1, inspecting.stderr)
    assert "Connection refused" in forgetting.stderr


@pytest.mark.parametrize("group", ["inspect", "forget"])
def test_a_device_id_in_the_place_of_a_command_gets_a_hint(group):
    done = CliRunner().invoke(app, [group, "courier-7"], prog_name="nearcast")
    assert done.exit_code == 2
    assert f"'courier-7'. Did you mean `nearcast {group} device courier-7`?" in done.stderr
    mistyped = CliRunner().invoke(app, [group, "devise", "courier-7"], prog_name="nearcast").stderr
    assert "Did you mean 'device'?" in mistyped
    assert mistyped.count("Did you mean") == 1


@pytest.mark.processes
async def test_retract_confirms_and_retracts_all_or_none(process):
    where = f"--server={process.target}"
    async with nearcast.connect(process.target) as client:
        ids = await client.publisher().publish(
            [GeoObject({"spam"}, 14.5, 35.5, 600.0, key=f"spam-{number}") for number in range(3)]
        )
        named = (str(ids[0]), "--key", "spam-1", where)
        no = on_a_terminal("n", "retract", *named)
        assert no.returncode == 1
        assert f"Retract 2 objects on {process.target}?" in no.stdout
        wrong = run("retract", "--key=ham", "--yes", *named)
        assert wrong.returncode == 1
        assert "ham" in wrong.stderr
        assert [await client.inspect(object_id=one) for one in ids]
        assert run("retract", "--yes", *named).stdout == "2 objects retracted\n"
        for key in ("spam-0", "spam-1"):
            with pytest.raises(RefusedError):
                await client.inspect(object_key=key)
        assert await client.inspect(object_key="spam-2")
    assert "Give the id of an object, or --key." in run("retract", "--yes", where).stderr


@pytest.mark.processes
async def test_forget_confirms_deletes_and_lists_the_remains(process):
    where = f"--server={process.target}"
    async with nearcast.connect(process.target) as client:
        async with nearcast.connect(process.target) as phone:
            device = await phone.attach("car-7", lon=14.5, lat=35.5)
            subscription = await device.subscribe(TopK({"a"}))
            no = on_a_terminal("n", "forget", "device", "car-7", where)
            assert no.returncode == 1
            assert f"Delete all data of device car-7 on {process.target}?" in no.stdout
            assert subscription.error is None
            yes = on_a_terminal("y", "forget", "device", "car-7", where)
            async with asyncio.timeout(60):
                assert [state async for state in subscription.states()][-1] is SubscriptionState.ENDED
        assert yes.returncode == 0
        _, _, output = yes.stdout.partition("? [y/N]: ")
        first, *others = output.splitlines()
        assert first == "device car-7: 1 subscription, its session and its positions were deleted"
        assert "Earlier backups still contain the data" in others[0]
        assert isinstance(subscription.error, RefusedError)
        with pytest.raises(RefusedError):
            await client.inspect("car-7")
        again = run("forget", "device", "car-7", "--yes", where).stdout
        assert again.startswith("device car-7: it had no subscriptions, or was unknown;")
