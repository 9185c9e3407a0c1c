"""`python -m tests.chaos.damages`: damages of a store's files, and what a start makes of each.

A start either serves every acknowledged operation, compared row by row, or refuses with an error that
names the damage. Everything else is a silent loss. A second start, with the same files, accepts the loss:
it serves what is intact, without a need to be accepted again, or refuses because nothing can be read.
"""

from __future__ import annotations

import json
import logging
import random
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from cli.progress import bars
from server.store import check, opening
from server.store import mark as marks
from tests.chaos.damage_kinds import ACCEPTED, KINDS, Damage
from tests.chaos.damaged_store import NAME, Evidence, Outcome, build, start, write

Progress = Callable[[str, int, int], None]

_SHOWN = 20


@dataclass(slots=True)
class DamageTally:
    """What came of one kind of damage."""

    kind: str
    tried: int = 0
    exact: int = 0
    """Served, every row as it was acknowledged."""
    refused: int = 0
    accepted: int = 0
    """Of those refused: served once the loss is accepted."""
    earlier: int = 0
    """Served as it was before one of the last commits: for kinds for which that is accepted."""
    silent: list[str] = field(default_factory=list)
    """Served otherwise, or ended by what is no refusal."""
    reasons: set[str] = field(default_factory=set)


def run(count: int, seed: int, progress: Progress) -> list[DamageTally]:
    """Try so many damages, the kinds in turn. The same seed makes the same damages."""
    kinds = {**KINDS, **ACCEPTED}
    tallies = {kind: DamageTally(kind) for kind in kinds}
    names = list(kinds)
    with tempfile.TemporaryDirectory(prefix="nearcast-damages-") as name:
        folder = Path(name)
        evidence = build(folder, seed)
        for number in range(count):
            kind = names[number % len(names)]
            rng = random.Random(f"{seed}/{number}")
            _try(tallies[kind], f"damage {number}", kinds[kind], evidence, rng, folder / "trial")
            progress("damages", number + 1, count)
    return list(tallies.values())


def _try(
    tally: DamageTally,
    name: str,
    damage: Damage,
    evidence: Evidence,
    rng: random.Random,
    folder: Path,
) -> None:
    files = damage(evidence, rng)
    tally.tried += 1
    try:
        write(folder, files)
        found = start(folder)
        write(folder, files)
        wrong = _accepted(tally, found, folder)
    except Exception as error:  # noqa: BLE001 - whatever is no refusal is a finding
        tally.silent.append(f"{name}: {type(error).__name__}: {error}")
        return
    if wrong:
        tally.silent.append(f"{name}, with the loss accepted: {wrong}")
    elif found.refusal:
        _count_refusal(tally, name, found, folder)
    elif found.rows == evidence.rows:
        tally.exact += 1
    elif tally.kind in ACCEPTED and found.rows in evidence.earlier_rows:
        tally.earlier += 1
    else:
        tally.silent.append(f"{name}: {_difference(found, evidence)}")


def _accepted(tally: DamageTally, before: Outcome, folder: Path) -> str:
    """Start with the loss accepted; return what is wrong with it, if anything."""
    known = _mark_of(folder)
    found = start(folder, accept_loss=True)
    if found.refusal:  # nothing can be read, or it is the store of another version or program
        is_named = "restore a backup" in found.refusal or found.refusal == before.refusal
        return "" if before.refusal and is_named else found.refusal
    again = start(folder)
    if again.refusal or again.rows != found.rows:
        return again.refusal or "the next start serves other rows"
    if not before.refusal and before.rows != found.rows:
        return "rows are lost that were served without it"
    if problems := check(folder / NAME, lambda *_: None):
        return problems[0]
    tally.accepted += bool(before.refusal)
    return _number_wrong(found, known)


def _mark_of(folder: Path) -> marks.Mark | None:
    try:
        return marks.read(str(folder / NAME))
    except marks.MarkError:
        return None


def _number_wrong(found: Outcome, known: marks.Mark | None) -> str:
    """Return which of the next id and the time is below the rows or the mark, if one is."""
    settings = {row[0]: row[1] for row in found.rows["meta"]}
    next_id, time_ms = int(settings["next_object_id"]), int(settings["time_ms"])
    latest_id = max((row[0] for row in found.rows["objects"]), default=0)
    latest_id = max([latest_id, *(row[3] for row in found.rows["sink"])])
    if next_id <= latest_id:
        return f"the next id is {next_id}, after {latest_id}"
    if known is None or known.store_id != settings["store_id"]:
        return ""
    is_behind = next_id < known.next_object_id or time_ms < known.time_ms
    return f"{next_id} and {time_ms} are below those of {known}" if is_behind else ""


def _count_refusal(tally: DamageTally, name: str, found: Outcome, folder: Path) -> None:
    if str(folder / NAME) in found.refusal:
        tally.refused += 1
        tally.reasons.add(found.refusal.replace(str(folder), ""))
    else:
        tally.silent.append(f"{name}: the refusal does not name the store: {found.refusal}")


def _difference(found: Outcome, evidence: Evidence) -> str:
    parts = []
    for table, rows in evidence.rows.items():
        lost = set(rows) - set(found.rows[table])
        added = set(found.rows[table]) - set(rows)
        if lost or added:
            parts.append(f"{table}: {len(lost)} of {len(rows)} rows lost, {len(added)} others")
    return "; ".join(parts) or "rows in another order"


@click.command()
@click.option("--damages", default=2000, show_default=True, help="How many, of all kinds in turn.")
@click.option("--seed", default=1, show_default=True, help="Decides everything.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Where to write the figures.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--reasons", is_flag=True, help="Print an example of each refusal.")
def main(damages: int, seed: int, path: Path | None, *, markdown: bool, reasons: bool) -> None:
    """Damage a store's files in ways that know their format; fail if a start loses anything silently.

    A minute or two for 2,000.
    """
    logging.disable(logging.CRITICAL)
    opening.SYNCHRONOUS = "OFF"  # of what files hold, not of when
    with bars() as progress:
        tallies = run(damages, seed, progress)
    if markdown:
        click.echo(as_markdown(tallies))
    else:
        Console().print(_table(tallies))
    if reasons:
        for one in tallies:
            for text in sorted(one.reasons)[:_SHOWN]:
                click.echo(f"{one.kind}: {text[:300]}")
    if path is not None:
        rows = [asdict(one) | {"reasons": sorted(one.reasons)} for one in tallies]
        about = {"damages": damages, "seed": seed, "sqlite": sqlite3.sqlite_version, "kinds": rows}
        path.write_text(json.dumps(about, indent=1) + "\n")
    silent = [f"{one.kind}: {text}" for one in tallies for text in one.silent]
    for text in silent[:_SHOWN]:
        click.echo(text[:1000], err=True)
    sys.exit(bool(silent))


_TITLES = ("tried", "exact", "refused", "accepted", "earlier", "silent")


def _counts(one: DamageTally) -> tuple[int, ...]:
    return one.tried, one.exact, one.refused, one.accepted, one.earlier, len(one.silent)


def _table(tallies: list[DamageTally]) -> Table:
    table = Table(title="Damages and what a start made of them", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("kind")
    for title in _TITLES:
        table.add_column(title, justify="right", no_wrap=True)
    for one in tallies:
        table.add_row(one.kind, *(f"{count:,}" for count in _counts(one)))
    table.add_section()
    table.add_row("all", *(f"{count:,}" for count in _sums(tallies)))
    return table


def as_markdown(tallies: list[DamageTally]) -> str:
    """Write the table for the documentation."""
    lines = [" | ".join(("| kind", *_TITLES)) + " |", "|---" * (1 + len(_TITLES)) + "|"]
    for kind, counts in (*((one.kind, _counts(one)) for one in tallies), ("all", _sums(tallies))):
        lines.append(f"| {kind} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    return "\n".join(lines)


def _sums(tallies: list[DamageTally]) -> list[int]:
    return [sum(counts) for counts in zip(*map(_counts, tallies), strict=True)]


if __name__ == "__main__":
    main()
