"""`nearcast plan`: its arithmetic, its sources, and its errors."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from cli.app import app
from cli.plan import sizes
from cli.plan.constants import CONSTANTS
from cli.plan.sizes import CONNECTIONS_MAX, Demand, PlanError, plan_of
from cluster.codec import encoded
from cluster.entries import Caller, Entry, Publish
from nearcast.canonical import NewObject
from tests.cli.test_serve import ROOT


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *arguments])


def of(name):
    return CONSTANTS[name].value


def test_the_reports_are_those_that_were_measured_at_the_speed_of_the_measurement():
    top_k = Demand(devices=3_600, speed_kmh=of("top_k_speed_kmh"))
    assert sizes.reports_per_s(top_k) == pytest.approx(of("top_k_reports_per_hour"))
    ranges = Demand(devices=3_600, speed_kmh=of("range_speed_kmh"), top_k_share=0)
    assert sizes.reports_per_s(ranges) == pytest.approx(of("range_reports_per_hour"))
    half = Demand(devices=3_600, speed_kmh=of("top_k_speed_kmh") / 2, subscriptions=4)
    assert sizes.reports_per_s(half) == pytest.approx(2 * of("top_k_reports_per_hour"))
    assert sizes.reports_per_s(Demand(speed_kmh=0)) == 0


def test_the_pushes_are_those_that_were_measured_at_the_rate_of_the_measurement():
    measured = {"publishes_per_s": of("traffic_arrivals_per_s"), "objects": of("traffic_objects")}
    assert sizes.deltas_per_s(Demand(devices=3_600, **measured)) == pytest.approx(
        of("top_k_pushes_per_hour")
    )
    doubled = measured | {"publishes_per_s": 20, "objects": 50_000}
    assert sizes.deltas_per_s(Demand(devices=3_600, **doubled)) == pytest.approx(
        4 * of("top_k_pushes_per_hour")
    )


def test_an_object_costs_what_was_measured_in_requests_of_one_and_of_a_hundred():
    assert sizes.object_us(Demand(per_request=1)) == pytest.approx(of("one_us"))
    assert sizes.object_us(Demand(per_request=100)) == pytest.approx(of("request_us") / 100)


def test_an_object_has_the_bytes_of_the_log():
    words = ("coffee", "bakery", "sweets")
    new = NewObject(14.5123456, 35.5123456, words, 3_600_000, bytes(64))
    caller = Caller("", "", ())
    few, many = (len(encoded([Entry(0, Publish(caller, (new,) * count))])) for count in (100, 200))
    assert sizes.object_bytes(Demand()) == pytest.approx((many - few) / 100, rel=0.1)


def test_nodes_share_reports_and_connections_but_not_objects():
    demand = Demand(devices=1_000_000, publishes_per_s=1_000, speed_kmh=400)
    found = plan_of(demand)
    serving = found.nodes - 1
    assert found.limited_by == "CPU"
    assert found.node_cpu_cores <= demand.load
    assert sizes.node_cores(demand, serving - 1) > demand.load, "one node less would not be enough"
    assert sizes.memory_mb(demand, 2 * serving) < found.node_memory_mb
    objects_mb = of("objects_mb") * demand.objects / 1e5
    assert found.node_memory_mb > of("server_mb") + of("libraries_mb") + objects_mb


def test_devices_without_gateways_need_connections():
    found = plan_of(Demand(devices=10 * CONNECTIONS_MAX + 1, has_gateways=False, spare=2))
    assert (found.nodes, found.limited_by, found.gateways) == (11 + 2, "connections", 0)


def test_more_nodes_do_not_help_against_too_many_publications():
    demand = Demand(publishes_per_s=100_000)
    with pytest.raises(PlanError, match=r"publishes_per_s is 100,000, must be below 4,495"):
        plan_of(demand)
    plan_of(Demand(publishes_per_s=3_900, devices=1, spare=0))


def test_rates_and_nodes_may_be_given():
    demand = Demand(reports_per_s=100, deltas_per_s=50, lease_s=1e6, has_gateways=False, nodes=4, spare=0)
    found = plan_of(demand)
    assert (found.reports_per_s, found.deltas_per_s, found.nodes) == (100, 50, 4)
    shared_us = 100 * of("report_us") + (50 + found.pings_per_s) * of("message_us")
    applying_us = demand.publishes_per_s * sizes.object_us(demand)
    requests = demand.publishes_per_s / demand.per_request
    awake_us = ((100 + found.pings_per_s) / 4 + requests) * of("alone_us")
    assert found.node_cpu_cores == pytest.approx(
        of("idle_cores") + (awake_us + shared_us / 4 + applying_us) / 1e6
    )


def test_what_it_costs_to_be_woken_has_a_limit():
    few, many, more = (
        plan_of(Demand(reports_per_s=rate, has_gateways=False, nodes=1, spare=0, load=1)).node_cpu_cores
        for rate in (20, 1_000, 1_100)
    )
    assert few > 20 * of("report_us") / 1e6 + of("idle_cores")
    assert more - many == pytest.approx(100 * of("report_us") / 1e6)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--devices=0"], "devices is 0, must be from 1 to 1,000,000,000"),
        (["--top-k-share=1.5"], "top_k_share is 1.5, must be from 0 to 1"),
        (["--devices=1e9", "--speed-kmh=900"], "which needs more than 1,024 nodes, must need fewer"),
        (["--nodes=2", "--reports-per-s=100000"], "nodes is 2, must be at least 18 for this demand"),
        (["--nodes=1024", "--spare=100"], "nodes is 1,024, must be at most 924 with 100 spare"),
        (["--spare=0.5"], "'0.5' is not a valid integer"),
        (["--payload-bytes=16385"], "payload_bytes is 16,385, must be from 0 to 16,384"),
        (["--updates-per-s=0.1"], "'--updates-per-s': 0.1 is not in the range 0.2<=x<=200000000.0"),
        (["--updates-per-s=nan"], "'--updates-per-s': 'nan' is not a number"),
        (["--devices=many"], "'many' is not a valid float"),
    ],
)
def test_wrong_values_are_refused_with_their_limits(arguments, error):
    done = run(*arguments)
    assert done.exit_code == 2
    assert error in done.stderr


def test_the_output_is_text_or_json():
    done = run("--devices=50000", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["demand"]["devices"] == 50_000
    assert found["plan"]["gateways"] == 3 + 1
    text = run("--devices=50000").output
    assert f"nodes                        {found['plan']['nodes']}, 1 of them spare" in text


@pytest.mark.parametrize("spare", [0, 2])
def test_a_load_for_which_one_server_suffices(spare):
    """So that nobody takes the plan of a cluster as advice to have one."""
    text = run("--devices=2000", f"--spare={spare}").output
    assert text.endswith(
        "\nOne server without a log can carry this load; a cluster survives the loss of a machine.\n"
    )
    assert "One server" not in run("--devices=2000000", f"--spare={spare}").output


def test_locations_a_second_are_devices_that_send_one_every_five_seconds():
    found = json.loads(run("--updates-per-s=190000", "--json").output)
    assert found["demand"]["devices"] == 950_000
    assert json.loads(run("--updates-per-s=0.2", "--json").output)["demand"]["devices"] == 1


def test_every_constant_is_in_the_page_that_it_names():
    pages = {path: (ROOT / "docs" / path).read_text() for path in ("performance.md", "operations.md")}
    pages |= {
        path: (ROOT / "docs" / path).read_text() for path in ("cluster.md", "gateway.md", "plan.md")
    }
    checked = 0
    for name, one in CONSTANTS.items():
        page, _, _ = one.source.removeprefix("docs/").partition(",")
        if one.source.startswith("docs/"):
            text = f"{one.value:,g}"
            assert text in pages[page], f"{name} is {text}"
            checked += 1
    assert checked > len(CONSTANTS) / 2
    assert json.loads(run("--constants", "--json").output).keys() == CONSTANTS.keys()


def test_the_page_shows_what_the_command_prints():
    page = (ROOT / "docs/plan.md").read_text()
    blocks = re.findall(r"^\$ nearcast plan (.*?)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for arguments, shown in blocks:
        assert run(*arguments.split()).output == shown
