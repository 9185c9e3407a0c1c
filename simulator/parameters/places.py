"""Parameters of the location of a simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from feeds.parameters import Parameters, Shown


class PlaceParameters(Parameters):
    """A map or a generated city, and the seed of all random numbers."""

    map_file: Annotated[Path | None, Shown(flag="--map")] = Field(
        None,
        description="Map of the roads: OpenStreetMap (.osm.pbf, .osm, .osm.gz, .osm.bz2), or either "
        "file of a road network (.cnode and .cedge, .node and .edge, .gr and .co, or "
        "nodes.csv and edges.csv, also with .gz); by default a city is generated.",
    )
    unit_m: float | None = Field(
        None,
        ge=1e-6,
        le=1e6,
        description="Metres per unit, for a road network with coordinates other than degrees "
        "(Oldenburg: with 2.5 it is 25 km wide). Its centre is at 0 degrees of longitude "
        "and latitude.",
    )
    places_file: Annotated[Path | None, Shown(flag="--places")] = Field(
        None,
        description="CSV file of places that replace those of the map: lon and lat (x and y with "
        "--unit-m), name, keywords or text, category. For a road network without this file, "
        "places are generated.",
    )
    texts_file: Annotated[Path | None, Shown(flag="--texts")] = Field(
        None,
        description="CSV file of texts with positions, which are published in place of words of places: "
        "lon and lat (x and y with --unit-m), text. Texts outside the map are omitted.",
    )
    name: str | None = Field(None, description="Display name; by default that of the city or the map.")
    seed: int = Field(
        1, ge=0, le=2**63 - 1, description="Seed of all random choices; equal seeds give equal rows."
    )
    city_width_m: float = Field(
        12_000.0, ge=3_000, le=40_000, description="Width of the generated city, metres."
    )
    places: Annotated[int, Shown(flag="--place-count")] = Field(
        2_500,
        ge=1,
        le=1_000_000,
        description="Points of interest of the generated city, or of a road network without any.",
    )

    @property
    def input_files(self) -> tuple[Path, ...]:
        """The files that these parameters name."""
        named = (self.map_file, self.places_file, self.texts_file)
        return tuple(path for path in named if path is not None)

    @field_validator("name")
    @classmethod
    def _require_text(cls, name: str | None) -> str | None:
        if name is not None and not name.strip():
            raise ValueError("must not be empty")
        return name

    @model_validator(mode="after")
    def _have_a_map(self) -> PlaceParameters:
        for name in ("unit_m", "places_file"):
            if self.map_file is None and getattr(self, name) is not None:
                raise ValueError(f"{name} is {getattr(self, name)}, which requires a map_file")
        return self
