"""The command `nearcast plan`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import Field, asdict, fields
from typing import Any

import click

from cli.failures import refused
from cli.numbers import FiniteRange
from cli.plan.constants import CONSTANTS
from cli.plan.sizes import DEVICES_MAX, Demand, Plan, PlanError, equivalent_devices, plan_of

_UPDATES_PERIOD_S = 5.0
_UPDATES_PER_S = (1 / _UPDATES_PERIOD_S, DEVICES_MAX / _UPDATES_PERIOD_S)
"""Those of one device, and those of as many as a plan may be for."""


def _demands(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each field of a demand."""
    for one in reversed([one for one in fields(Demand) if "least" in one.metadata]):
        command = _option(one)(command)
    return command


def _option(one: Field[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    least, most = one.metadata["least"], one.metadata["most"]
    text = f"{one.metadata['meaning']} From {least:,.12g} to {most:,.12g}."
    name = f"--{one.name.replace('_', '-')}"
    has_default = one.default is not None
    kind = int if one.metadata["whole"] else float
    return click.option(name, type=kind, default=one.default, show_default=has_default, help=text)


@click.command(epilog="Example: nearcast plan --devices 200000 --objects 500000 --publishes-per-s 100")
@_demands
@click.option(
    "--gateways/--no-gateways",
    "has_gateways",
    default=True,
    show_default=True,
    help="Whether devices connect through gateways, or to the nodes, each on a connection of its own.",
)
@click.option(
    "--updates-per-s",
    type=FiniteRange(*_UPDATES_PER_S),
    help="Plan for the devices that would send so many locations per second if each sent one every five "
    "seconds; replaces --devices.",
)
@click.option("--constants", is_flag=True, help="Print the measured constants and their sources.")
@click.option("--json", "as_json", is_flag=True, help="Print all as JSON.")
def plan(
    *,
    updates_per_s: float | None,
    constants: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Compute how many nodes and gateways a number of devices needs, and what each of them uses.

    The figures are computed from measurements on two cores of a virtual Xeon, which --constants shows.
    They are estimates: measure with your own objects and devices before you rely on them.
    """
    if constants:
        _print_constants(as_json=as_json)
        return
    if updates_per_s is not None:
        options["devices"] = equivalent_devices(updates_per_s, _UPDATES_PERIOD_S)
    with refused(PlanError):
        demand = Demand(**options)
        found = plan_of(demand)
    if as_json:
        click.echo(json.dumps({"demand": asdict(demand), "plan": asdict(found)}, indent=2))
    else:
        click.echo(_text(demand, found))


def _print_constants(*, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({name: one._asdict() for name, one in CONSTANTS.items()}, indent=2))
        return
    for name, one in CONSTANTS.items():
        click.echo(f"{name:<26}{one.value:>10,g} {one.unit}\n{'':<4}{one.source}")


def _text(demand: Demand, found: Plan) -> str:
    rows = [
        ("reports of all devices", f"{found.reports_per_s:,.0f} a second"),
        ("deltas of published objects", f"{found.deltas_per_s:,.0f} a second"),
        ("pings of all devices", f"{found.pings_per_s:,.0f} a second"),
        ("nodes", f"{found.nodes:,}, {demand.spare} of them spare; limited by {found.limited_by}"),
        ("servers of the log", f"{found.log_servers}"),
        ("a node: CPU", f"{found.node_cpu_cores:.2f} cores"),
        ("a node: memory", f"{found.node_memory_mb:,.0f} MB"),
        (
            "a node: network",
            f"{found.node_in_mbit_per_s:,.1f} Mbit/s in, {found.node_out_mbit_per_s:,.1f} out",
        ),
        ("the log: network", f"{found.log_mbit_per_s:,.2f} Mbit/s, to each server and each node"),
        ("the log: disk", f"{found.log_gb_per_day:,.2f} GB a day, on each server"),
    ]
    if found.gateways:
        rows += [
            ("gateways", f"{found.gateways:,}, {demand.spare} of them spare"),
            ("a gateway: CPU", f"{found.gateway_cpu_cores:.2f} cores"),
            ("a gateway: memory", f"{found.gateway_memory_mb:,.0f} MB"),
        ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name.ljust(width)}  {value}" for name, value in rows]
    if found.nodes == 1 + demand.spare:
        lines += [
            "",
            "One server without a log can carry this load; a cluster survives the loss of a machine.",
        ]
    return "\n".join([f"{demand.devices:,.0f} devices, {demand.objects:,.0f} objects", "", *lines])
