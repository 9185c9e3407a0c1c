"""What a report and a published object pass through is counted in a real server."""

from __future__ import annotations

from bench.call_path import report_and_publication
from bench.call_steps import DEVICE, PARTS, PUBLICATION, PUBLISHER, REPORT

REPORT_MAX, OBJECT_MAX = 200, 290
"""Functions: ARCHITECTURE.md has how many they were."""


def positions(calls, steps):
    """Return when the function of each step was called first."""
    order = [(function.module, function.name) for function in calls.functions]
    return [order.index((step.module, step.function)) for step in steps]


def test_a_step_is_handled_by_its_receiver():
    for step in (*REPORT, *PUBLICATION):
        handler = step.sender if step.receiver in {DEVICE, PUBLISHER} else step.receiver
        assert step.module.startswith(PARTS[handler]), step


async def test_the_way_of_a_report_and_of_an_object():
    report, publication = await report_and_publication()
    way = positions(report, REPORT)
    assert way == sorted(way)
    *way, response = positions(publication, PUBLICATION)
    assert way == sorted(way)
    commit = [step.receiver for step in PUBLICATION].index("store")
    assert response > way[commit], "a publisher gets its ids when they are on disk"
    names = {function.name for function in report.functions}
    assert {"Coordinator.report", "Engine.evaluate_parts", "EventEncoder.response"} <= names
    assert names.isdisjoint({"SqliteStore.commit", "Engine.are_pending", "Coordinator.detach_silent"})
    assert names.isdisjoint({"Engine.advance", "LocationRequests.answered"}), "nothing is due or pending"
    assert len(report.functions) <= REPORT_MAX
    assert len(publication.functions) <= OBJECT_MAX
    names = {function.name for function in publication.functions}
    assert {"SqliteStore.commit", "Engine.publish", "EventEncoder.response"} <= names
    for calls in (report, publication):
        assert {module.split(".")[0] for module in calls.modules} <= {
            "server",
            "engine",
            "index",
            "safe_region",
        }
        assert not calls.is_counting
