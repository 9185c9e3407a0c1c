"""The arithmetic of a plan: from devices, objects and rates to nodes, memory, CPU and network.

Reports, deltas, connections and subscriptions are divided among the nodes. Objects are not: each node has
all of them, and applies every publication. So a rate of publications that fills the core of one node
cannot be served by more nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from cli.plan.constants import CONSTANTS
from nearcast.limits import DEFAULT_LIMITS

_HOUR_S = 3_600.0
_REQUEST = 100
"""Objects of the request whose cost was measured."""
_PINGS_PER_LEASE = 3.0
"""A silent device renews its lease at each third of it."""
_PAYLOAD_BYTES = 64
"""Payload of the objects whose memory was measured."""
CONNECTIONS_MAX = 16_384
GATEWAY_CONNECTIONS_MAX = 20_000
"""The defaults of --connections-max of a node and of a gateway."""
DEVICES_MAX = 1e9
NODES_MAX = 1_024
"""A node serves a slot at least."""


class PlanError(Exception):
    """No number of nodes is enough, or a value is outside its limits."""


def _of(name: str) -> float:
    return CONSTANTS[name].value


def limited(
    default: float | None, least: float, most: float, meaning: str, *, whole: bool = False
) -> Any:  # noqa: ANN401
    """Return a field with its limits, for the check and for the help; `whole` is for the option."""
    facts = {"least": least, "most": most, "meaning": meaning, "whole": whole}
    return field(default=default, metadata=facts)


@dataclass(frozen=True, slots=True)
class Demand:
    """What has to be served.

    Raises
    ------
    PlanError
        If a value is outside its limits.
    """

    devices: float = limited(10_000, 1, DEVICES_MAX, "Devices that are attached at once.")
    subscriptions: float = limited(1, 1, 64, "Subscriptions of a device.")
    speed_kmh: float = limited(36.5, 0, 1_000, "Mean speed of devices, standing times included.")
    top_k_share: float = limited(
        1, 0, 1, "Share of top-k subscriptions; the others are moving ranges of 500 m."
    )
    objects: float = limited(100_000, 1, 1e8, "Live objects.")
    publishes_per_s: float = limited(10, 0, 1e6, "Objects that are published per second.")
    per_request: float = limited(100, 1, 1_000, "Objects of a request.")
    keywords: float = limited(3, 1, 64, "Keywords of an object.")
    payload_bytes: float = limited(
        64, 0, DEFAULT_LIMITS.payload_bytes_max, "Bytes of an object's payload."
    )
    lease_s: float = limited(600, 1, 1e6, "Lease of a device, --lease-ms of the nodes.")
    load: float = limited(
        0.5,
        0.25,
        1,
        "Share of one core that a node, or a gateway, may use when all are there but the spare.",
    )
    spare: int = limited(1, 0, 100, "Nodes, and gateways, that may fail at a time.", whole=True)
    nodes: int | None = limited(
        None, 1, NODES_MAX, "Nodes without the spare ones. By default as few as suffice.", whole=True
    )
    reports_per_s: float | None = limited(
        None, 0, 1e9, "Reports of all devices per second. By default computed from their speed."
    )
    deltas_per_s: float | None = limited(
        None, 0, 1e9, "Deltas of published objects per second. By default computed."
    )
    has_gateways: bool = True

    def __post_init__(self) -> None:
        for one in fields(self):
            if "least" not in one.metadata:
                continue
            value, least, most = getattr(self, one.name), one.metadata["least"], one.metadata["most"]
            if value is not None and not least <= value <= most:
                raise PlanError(
                    f"{one.name} is {value:,.12g}, must be from {least:,.12g} to {most:,.12g}"
                )


@dataclass(frozen=True, slots=True)
class Plan:
    """What serves it. Figures of a node are those while the spare ones are gone."""

    reports_per_s: float
    deltas_per_s: float
    pings_per_s: float
    limited_by: str
    nodes: int
    log_servers: int
    gateways: int
    node_cpu_cores: float
    node_memory_mb: float
    node_in_mbit_per_s: float
    node_out_mbit_per_s: float
    gateway_cpu_cores: float
    gateway_memory_mb: float
    log_mbit_per_s: float
    log_gb_per_day: float


def plan_of(demand: Demand) -> Plan:
    """Return the plan for a demand.

    Raises
    ------
    PlanError
        If no number of nodes is enough.
    """
    reports, pushes, pings = reports_per_s(demand), deltas_per_s(demand), pings_per_s(demand)
    serving, limited_by = _serving(demand)
    gateway_s = (reports * _of("gateway_report_us") + (pushes + pings) * _of("gateway_push_us")) / 1e6
    gateways = _gateways(demand, gateway_s)
    entry_bytes = object_bytes(demand) * demand.publishes_per_s
    return Plan(
        reports_per_s=reports,
        deltas_per_s=pushes,
        pings_per_s=pings,
        limited_by=limited_by,
        nodes=serving + demand.spare,
        log_servers=3,
        gateways=gateways + demand.spare if gateways else 0,
        node_cpu_cores=node_cores(demand, serving),
        node_memory_mb=memory_mb(demand, serving),
        node_in_mbit_per_s=(reports * _up_bytes() / serving + entry_bytes) * 8e-6,
        node_out_mbit_per_s=(reports + pushes) * _down_bytes() / serving * 8e-6,
        gateway_cpu_cores=gateway_s / gateways if gateways else 0.0,
        gateway_memory_mb=demand.devices / gateways * _of("gateway_socket_kb") / 1e3 if gateways else 0.0,
        log_mbit_per_s=entry_bytes * 8e-6,
        log_gb_per_day=entry_bytes * 86_400.0 / 1e9,
    )


def reports_per_s(demand: Demand) -> float:
    """Return the reports of all devices: in proportion to the way that they go."""
    if demand.reports_per_s is not None:
        return demand.reports_per_s
    top_k = demand.top_k_share * _of("top_k_reports_per_hour") / _of("top_k_speed_kmh")
    ranges = (1.0 - demand.top_k_share) * _of("range_reports_per_hour") / _of("range_speed_kmh")
    per_hour = (top_k + ranges) * demand.speed_kmh
    return demand.devices * demand.subscriptions * per_hour / _HOUR_S


def deltas_per_s(demand: Demand) -> float:
    """Return the pushed deltas: a new object is as likely to be among those of a device as any other."""
    if demand.deltas_per_s is not None:
        return demand.deltas_per_s
    arrivals = demand.publishes_per_s / _of("traffic_arrivals_per_s")
    density = _of("traffic_objects") / demand.objects
    share = demand.top_k_share
    per_hour = share * _of("top_k_pushes_per_hour") + (1.0 - share) * _of("range_pushes_per_hour")
    return demand.devices * demand.subscriptions * per_hour * arrivals * density / _HOUR_S


def pings_per_s(demand: Demand) -> float:
    """Return the pings that renew leases, of devices that send nothing else."""
    return demand.devices * _PINGS_PER_LEASE / demand.lease_s


def node_cores(demand: Demand, nodes: int) -> float:
    """Return the CPU time per second of each of some nodes.

    A message that arrives by itself costs more than one of many, since it wakes the node. The more
    messages there are, the more arrive while the node is awake.
    """
    reports, pushes, pings = (rate(demand) / nodes for rate in (reports_per_s, deltas_per_s, pings_per_s))
    requests = demand.publishes_per_s / demand.per_request
    awake = min(_of("awake_cores"), (reports + pings + requests) * _of("alone_us") / 1e6)
    applying_us = demand.publishes_per_s * object_us(demand)
    serving_us = reports * _report_us(demand) + (pushes + pings) * _of("message_us")
    return _of("idle_cores") + awake + (applying_us + serving_us) / 1e6


def object_us(demand: Demand) -> float:
    """Return the CPU time of a published object, between those of requests of one and of a hundred."""
    fixed_us = (_of("one_us") - _of("request_us") / _REQUEST) / (1.0 - 1.0 / _REQUEST)
    each_us = _of("one_us") - fixed_us
    return each_us + fixed_us / demand.per_request


def object_bytes(demand: Demand) -> float:
    """Return the bytes of an object in the log."""
    return _of("entry_bytes") + _of("keyword_bytes") * demand.keywords + demand.payload_bytes


def memory_mb(demand: Demand, nodes: int) -> float:
    """Return the memory of each of some nodes."""
    of_object = _of("objects_mb") / 100.0 + (demand.payload_bytes - _PAYLOAD_BYTES) / 1e3
    of_stream = _of("fleet_device_kb" if demand.has_gateways else "connection_kb")
    of_device = of_stream + demand.subscriptions * _of("subscription_kb")
    fixed = _of("server_mb") + _of("libraries_mb")
    return fixed + (demand.objects * of_object + demand.devices / nodes * of_device) / 1e3


def equivalent_devices(updates_per_s: float, period_s: float) -> float:
    """Return how many devices send so many updates, if each sends one in every period."""
    return updates_per_s * period_s


def _serving(demand: Demand) -> tuple[int, str]:
    """Return the number of nodes without the spare ones, and what limits it."""
    nodes_max = NODES_MAX - demand.spare
    enough = (number for number in range(1, nodes_max + 1) if node_cores(demand, number) <= demand.load)
    by_cpu = next(enough, None)
    by_streams = 1 if demand.has_gateways else math.ceil(demand.devices / CONNECTIONS_MAX)
    if by_cpu is None or by_streams > nodes_max:
        raise _too_much(demand)
    found = max(by_cpu, by_streams)
    if demand.nodes is not None:
        if demand.nodes < found:
            raise PlanError(f"nodes is {demand.nodes:,}, must be at least {found:,} for this demand")
        if demand.nodes > nodes_max:
            limit = f"at most {nodes_max:,} with {demand.spare} spare"
            raise PlanError(f"nodes is {demand.nodes:,}, must be {limit}")
        return demand.nodes, "the number given"
    return found, "connections" if by_streams > by_cpu else "CPU"


def _too_much(demand: Demand) -> PlanError:
    """Return why no number of nodes is enough."""
    left = demand.load - _of("idle_cores") - _of("awake_cores")
    most = left * 1e6 / object_us(demand)
    if demand.publishes_per_s >= most:
        return PlanError(
            f"publishes_per_s is {demand.publishes_per_s:,.12g}, must be below {most:,.0f}: every node "
            f"applies every object, and may use {demand.load:g} of a core"
        )
    return PlanError(
        f"devices is {demand.devices:,.12g}, which needs more than {NODES_MAX:,} nodes, must need fewer"
    )


def _gateways(demand: Demand, gateway_s: float) -> int:
    """Return the number of gateways without the spare ones: each has a WebSocket for a device."""
    if not demand.has_gateways:
        return 0
    return max(math.ceil(demand.devices / GATEWAY_CONNECTIONS_MAX), math.ceil(gateway_s / demand.load))


def _report_us(demand: Demand) -> float:
    return _of("fleet_report_us" if demand.has_gateways else "report_us")


def _up_bytes() -> float:
    return _of("top_k_up_bytes_per_hour") / _of("top_k_reports_per_hour")


def _down_bytes() -> float:
    messages = _of("top_k_reports_per_hour") + _of("top_k_pushes_per_hour")
    return _of("top_k_down_bytes_per_hour") / messages
