"""`nearcast indexes`."""

from __future__ import annotations

import json

import click

from index.catalogue import KINDS
from index.entry import NO_INDEX, Kind


@click.command(epilog="Example: nearcast indexes")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def indexes(*, as_json: bool) -> None:
    """List the indexes that a server can use, and the settings that choose them.

    There is a list for each kind of index. `*` marks the default. An index from a paper is shown with the
    paper and its section; the others are nearcast's own.
    """
    if as_json:
        click.echo(json.dumps({kind.name: _plain(kind) for kind in KINDS.values()}, indent=2))
        return
    click.echo("\n\n".join("\n".join(_lines(kind)) for kind in KINDS.values()))


def _rows(kind: Kind) -> list[tuple[str, str, str]]:
    """Return name, paper and description of each index that the setting accepts."""
    rows = [(name, entry.source, entry.what) for name, entry in kind.indexes.items()]
    return [(NO_INDEX, "", kind.without), *rows] if kind.without else rows


def _lines(kind: Kind) -> list[str]:
    rows = _rows(kind)
    name_width = max(len(name) for name, _, _ in rows)
    source_width = max(len(source) for _, source, _ in rows)
    return [
        f"{kind.name} ({kind.flag}): {kind.what}",
        *(
            f"{'*' if name == kind.default else ' '} {name.ljust(name_width)}  "
            f"{source.ljust(source_width)}  {what}"
            for name, source, what in rows
        ),
    ]


def _plain(kind: Kind) -> dict[str, object]:
    """Return a kind for JSON output."""
    return {
        "setting": kind.setting,
        "flag": kind.flag,
        "what": kind.what,
        "default": kind.default,
        "indexes": [
            {"name": name, "paper": source or None, "what": what} for name, source, what in _rows(kind)
        ],
    }
