"""The Grafana dashboard: every query is about metrics that exist, and can be drawn."""

from __future__ import annotations

import asyncio
import json

import pytest

from bench.dashboard import panels
from bench.dashboard.queries import QueryError, evaluated, names
from bench.dashboard.recording import parsed, scraped
from server.monitoring.catalogue import COUNTERS, GAUGES, MEASURES
from tests.support.servers import serving
from tests.wire.conftest import settings

QUERIES = [target["expr"] for panel in panels.panels() for target in panel["targets"]]
NOT_SHOWN = {"idf_generation", "idf_coming_into_force", "first_hello_ms", "last_snapshot_ms", "streams"}
NOT_SHOWN |= {"subscriptions", "kernels_compiled", "kernels_missing", "source_refused"}
NOT_SHOWN |= {"devices_forgotten", "devices_deleted", "source_unreadable"}
NOT_SHOWN |= {"bridge_failures", "bridge_failing"}
NOT_SHOWN |= {"requests_unparsable", "deltas_queued", "cluster_rules"}


@pytest.fixture(scope="module")
def recording():
    """Two scrapes of a server."""

    async def scrape():
        async with serving(settings(metrics_port=0)) as server:
            url = f"http://127.0.0.1:{server.metrics_port}/metrics"
            return [await asyncio.to_thread(scraped, url) for _ in range(2)]

    return asyncio.run(scrape())


def test_every_query_is_about_metrics_that_exist(recording):
    for query in QUERIES:
        assert names(query) <= set(recording[-1].samples), query
        assert names(query), query


def test_every_panel_can_be_drawn(recording, tmp_path):
    for query in QUERIES:
        evaluated(query, recording, 1)
    panels.draw(recording, tmp_path / "dashboard.png")
    assert (tmp_path / "dashboard.png").stat().st_size > 10_000


def test_it_shows_nearly_all_there_is():
    shown = {name for query in QUERIES for name in names(query)}
    for name in {*COUNTERS, *GAUGES, *MEASURES} - NOT_SHOWN:
        stem = name.removesuffix("_us").removesuffix("_ms")
        assert any(one.startswith(f"nearcast_{stem}") for one in shown), name


def test_panels_have_their_own_place_and_the_chosen_data_source():
    board = json.loads(panels.FILE.read_text())
    taken = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        taken |= cells
        assert panel["datasource"]["uid"] == "${datasource}"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_all_instances_are_those_that_have_metrics_of_nearcast():
    """A value for all, as ".*", would add other programs with metrics of their process."""
    variables = {one["name"]: one for one in json.loads(panels.FILE.read_text())["templating"]["list"]}
    assert "nearcast_state" in variables["instance"]["query"]
    assert variables["instance"].get("allValue") is None


TEXT = """\
# TYPE nearcast_x counter
nearcast_x_total{{kind="a"}} {a}
nearcast_x_total{{kind="b"}} {b}
# TYPE nearcast_y histogram
nearcast_y_bucket{{le="1.0"}} {low}
nearcast_y_bucket{{le="2.0"}} {high}
nearcast_y_bucket{{le="+Inf"}} {high}
"""


def values(query):
    samples = [
        parsed(TEXT.format(a=1, b=10, low=0, high=0), 0.0),
        parsed(TEXT.format(a=5, b=4, low=10, high=20), 2.0),
    ]
    return {tuple(sorted(labels)): value for labels, value in evaluated(query, samples, 1).items()}


def test_queries_are_evaluated_as_prometheus_does():
    assert values('nearcast_x_total{kind="a",instance=~"$instance"}') == {(("kind", "a"),): 5.0}
    assert values('nearcast_x_total{kind!="a"}') == {(("kind", "b"),): 4.0}
    rates = {(("kind", "a"),): 2.0, (("kind", "b"),): 2.0}  # b began anew
    assert values("rate(nearcast_x_total{}[$__rate_interval])") == rates
    assert values("sum by (instance) (nearcast_x_total{})") == {(("instance", ""),): 9.0}
    query = "histogram_quantile({}, sum by (le) (rate(nearcast_y_bucket{{}}[$__rate_interval])))"
    assert values(query.format(0.5)) == {(): 1.0}
    assert values(query.format(0.75)) == {(): 1.5}
    with pytest.raises(QueryError, match=r"avg\(nearcast_x_total\)"):
        values("avg(nearcast_x_total)")
