"""The measured constants of a plan, each with its source. All arithmetic is in `cli.plan.sizes`.

Figures are of two cores of a virtual Xeon. Where a source has a range, the constant is its larger end.
"""

from __future__ import annotations

from typing import NamedTuple


class Constant(NamedTuple):
    """A measured figure."""

    value: float
    unit: str
    source: str


_TRAFFIC = "docs/performance.md, How often devices report: city, anchored-cost-ahead"
_RANGES = "docs/performance.md, Devices with moving ranges: R = 500 m, anchored-cost-ahead"
_LOAD = "docs/performance.md, The server under load: 10,000 devices"
_AUTHENTICATION = "docs/performance.md, The cost of authentication: without tokens"
_SIZES = "docs/operations.md, Size a machine"
_FORMAT = "proto/cluster/v1/entries.proto, encoded"
_GATEWAY = "docs/gateway.md, What it costs"
_CLUSTER = "docs/cluster.md, Sizes and measurements: a single server"
_CHECK = "docs/plan.md, Compared with nodes under load"

CONSTANTS: dict[str, Constant] = {
    # Traffic of devices
    "top_k_speed_kmh": Constant(36.5, "km/h", "mean of the trajectories gps of bench silence, 600 s"),
    "range_speed_kmh": Constant(27.2, "km/h", "mean of the trajectories roads of bench ranges, 600 s"),
    "top_k_reports_per_hour": Constant(10.3, "reports per device and hour", _TRAFFIC),
    "top_k_pushes_per_hour": Constant(7.7, "pushes per device and hour", _TRAFFIC),
    "top_k_up_bytes_per_hour": Constant(288.0, "bytes per device and hour", _TRAFFIC),
    "top_k_down_bytes_per_hour": Constant(6_708.0, "bytes per device and hour", _TRAFFIC),
    "range_reports_per_hour": Constant(23.4, "reports per device and hour", _RANGES),
    "range_pushes_per_hour": Constant(3.0, "pushes per device and hour", _RANGES),
    "traffic_arrivals_per_s": Constant(10.0, "objects/s", f"{_TRAFFIC}; --set arrivals_per_s=10"),
    "traffic_objects": Constant(100_000.0, "objects", f"{_TRAFFIC}; the default of objects"),
    # CPU of a node
    "idle_cores": Constant(0.007, "cores", _CHECK),
    "alone_us": Constant(1_600.0, "us of CPU more per message that wakes a node by itself", _CHECK),
    "awake_cores": Constant(0.2, "cores at most for being woken", _CHECK),
    "report_us": Constant(272.0, "us of CPU per report", f"{_LOAD}, one connection per device"),
    "fleet_report_us": Constant(50.5, "us of CPU per report", f"{_AUTHENTICATION}, fleet stream"),
    "message_us": Constant(140.0, "us of CPU per ping or pushed delta", _SIZES),
    "request_us": Constant(6_519.0, "us of CPU per request of 100 objects", _CLUSTER),
    "one_us": Constant(1_261.0, "us of CPU per request of one object", _AUTHENTICATION),
    # CPU and memory of a gateway
    "gateway_report_us": Constant(38.0, "us of CPU per report", _GATEWAY),
    "gateway_push_us": Constant(50.0, "us of CPU per pushed delta", _GATEWAY),
    "gateway_socket_kb": Constant(20.5, "kB per WebSocket", _GATEWAY),
    # Memory of a node
    "server_mb": Constant(200.0, "MB", _SIZES),
    "libraries_mb": Constant(110.0, "MB", _SIZES),
    "objects_mb": Constant(90.0, "MB per 100,000 objects with payloads of 64 bytes", _SIZES),
    "subscription_kb": Constant(1.1, "kB per subscription of an attached device", _SIZES),
    "connection_kb": Constant(47.0, "kB per connection", _SIZES),
    "fleet_device_kb": Constant(4.0, "kB per device on a fleet stream", _SIZES),
    # The log
    "entry_bytes": Constant(28.0, "bytes of an object without keywords and payload", _FORMAT),
    "keyword_bytes": Constant(8.0, "bytes per keyword of six letters", _FORMAT),
}
