"""The option `--map`, of every command that simulates."""

from __future__ import annotations

from pathlib import Path

import click

map_option = click.option(
    "--map",
    "map_file",
    type=click.Path(path_type=Path),
    help="OpenStreetMap file to drive in (.osm.pbf, .osm, .osm.gz, .osm.bz2); else a city is generated.",
)
