"""The steps of a report and of a publication: the figures of ARCHITECTURE.md, and a test of them.

A step is a message between two parts of a server, with the function that handles it. The functions of
`bench.call_path` are these steps in this order, in a real server.
"""

from __future__ import annotations

from typing import NamedTuple

DEVICE, PUBLISHER = "device", "publisher"

PARTS: dict[str, tuple[str, ...]] = {
    DEVICE: ("server.transport",),
    PUBLISHER: ("server.transport",),
    "transport": ("server.transport",),
    "runtime": ("server.runtime", "server.commands"),
    "store": ("server.store",),
    "core": ("server.core",),
    "engine": ("engine",),
    "index": ("index",),
    "session": ("server.session",),
}
"""The parts and their packages. The transport encodes the messages for devices and publishers."""


class Step(NamedTuple):
    """A message between two parts.

    Parameters
    ----------
    sender, receiver
        Keys of `PARTS`. A step within a part has the same sender and receiver.
    text
        The content of the message.
    module, function
        The function of the receiver that handles it.
    """

    sender: str
    receiver: str
    text: str
    module: str
    function: str


def _delta_steps(change: str, sent: str) -> tuple[Step, ...]:
    """Return the steps from a change that the engine finds to the device that has to know it."""
    sender, encoder = "server.transport.stream_sender", "server.transport.event_encoder"
    return (
        Step("engine", "core", change, "server.core.matching_service", "MatchingService._delta"),
        Step("core", "session", "delta", "server.session.session", "Session.push"),
        Step("session", "transport", "numbered delta", sender, "StreamSender._write_all"),
        Step("transport", DEVICE, sent, encoder, "EventEncoder.response"),
    )


REPORT = (
    Step(
        DEVICE,
        "transport",
        "report: position",
        "server.transport.device_service",
        "DeviceServicer._read",
    ),
    Step(
        "transport", "runtime", "valid report", "server.runtime.command_loop", "CommandLoop.try_enqueue"
    ),
    Step("runtime", "runtime", "its turn comes", "server.runtime.batcher", "Batcher.accept"),
    Step("runtime", "core", "position", "server.core.coordinator", "Coordinator.report"),
    Step("core", "session", "version applied", "server.session.session", "Session.ack"),
    Step("core", "engine", "evaluate", "engine.engine", "Engine.evaluate_parts"),
    Step("engine", "index", "best objects here?", "index.tables.objects", "ObjectTable.best"),
    Step("engine", "engine", "choose b, prune", "engine.top_k.evaluation", "Evaluation.choose"),
    Step("engine", "index", "anchor, reach", "index.sq_plus_tree.index", "SqPlusTree.move"),
    *_delta_steps("buffer, reach", "buffer, reach"),
)
"""A report that changes a top-k result, until its delta is written."""

PUBLICATION = (
    Step(
        PUBLISHER,
        "transport",
        "objects",
        "server.transport.publisher_service",
        "PublisherServicer._read",
    ),
    Step("transport", "runtime", "objects", "server.runtime.command_loop", "CommandLoop.submit"),
    Step("runtime", "runtime", "validate, plan", "server.commands.planner", "Planner.plan_batch"),
    Step("runtime", "store", "commit", "server.store.sqlite", "SqliteStore.commit"),
    Step("runtime", "core", "objects", "server.core.coordinator", "Coordinator.publish"),
    Step("core", "engine", "insert, match", "engine.engine", "Engine.publish"),
    Step("engine", "index", "insert", "index.tables.objects", "PlaceTable.insert"),
    Step("engine", "index", "affected by it?", "index.sq_plus_tree.index", "SqPlusTree.match"),
    Step("engine", "engine", "admit, prune", "engine.top_k.matcher", "TopKMatcher._admit"),
    *_delta_steps("changed buffers", "object, reach"),
    Step(
        "transport",
        PUBLISHER,
        "ids",
        "server.transport.publisher_service",
        "PublisherServicer._message",
    ),
)
"""An object that a device has to hold, until it is written to the device and its id to the publisher."""
