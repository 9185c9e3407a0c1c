"""The server's settings: flags over environment over configuration file over defaults."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from index.catalogue import (
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
)
from safe_region.frame import Area, Frame

BUFFER_EXTRA_MAX = 1000
"""Above, a buffer costs more than the reports it saves."""


_COST_MAX = 1e9


class ServerSettings(BaseSettings):
    """What `nearcast serve` can be told.

    Every field can be set by a flag, by an environment variable `NEARCAST_<FIELD>`, or in a TOML file.
    """

    model_config = SettingsConfigDict(env_prefix="NEARCAST_", extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(7433, ge=0, le=65535, description="Port to listen on; 0 chooses a free one.")
    area: Annotated[Area, NoDecode] = Field(
        description="Service area as lon_min,lat_min,lon_max,lat_max in degrees."
    )
    store: Path = Field(Path("nearcast.db"), description="Database file; ':memory:' forgets everything.")
    buffer_extra: int | Literal["auto"] = Field(
        "auto", description="Objects beyond k that a device is given (b); auto chooses by cost."
    )
    report_cost: float = Field(2.0, ge=0.0, le=_COST_MAX, description="Price of a report and its answer.")
    object_cost: float = Field(1.0, ge=0.0, le=_COST_MAX, description="Price of an object sent.")
    held_cost: float = Field(
        0.0002, ge=0.0, le=_COST_MAX, description="Price of a second of holding an object."
    )
    buffer_extra_max: int = Field(32, ge=0, le=BUFFER_EXTRA_MAX, description="Largest b chosen by cost.")
    ahead: float = Field(
        0.9,
        ge=0.0,
        le=1.0,
        description="How much of the way an anchor may lie ahead of its device is used; 0 for none.",
    )
    assumed_speed_mps: float = Field(
        10.0, ge=0.0, le=10_000.0, description="Speed of devices of which nothing is known yet."
    )
    margin_buffer_max: int = Field(
        200,
        ge=0,
        le=BUFFER_EXTRA_MAX,
        description="Objects beyond k that a device may be given to cover the margin of its position.",
    )
    margin_m_max: float = Field(
        5000.0, ge=0.0, allow_inf_nan=False, description="Largest margin of a position, in metres."
    )
    lease_ms: int | None = Field(
        None,
        ge=0,
        description="How long a device may say nothing before it is detached and parked; 0 for ever. "
        "Ten minutes if not given, in virtual time for ever.",
    )
    subscription_retention_days: float | None = Field(
        None,
        ge=0.0,
        le=36_500.0,
        description="How long the subscriptions of a device are kept that is not heard of; 0 for ever. "
        "90 days if not given, in virtual time for ever.",
    )
    keepalive_ms: int = Field(
        30_000,
        ge=100,
        description="Between signs of life on a quiet connection; one that gives none for as long, "
        "at most ten seconds, is closed.",
    )
    late_ms: int = Field(
        1_000, ge=0, description="Deltas that wait longer before they are written are counted as late."
    )
    subscription_index: str = Field(
        DEFAULT_SUBSCRIPTION_INDEX,
        description=f"Who is affected by a new object: {', '.join(SUBSCRIPTION_INDEXES)}.",
    )
    object_index: str = Field(
        DEFAULT_OBJECT_INDEX, description=f"What is best here: {', '.join(OBJECT_INDEXES)}."
    )
    virtual_time: bool = Field(False, description="Let AdvanceClock drive the time.")
    tokens: tuple[str, ...] = Field(
        (), description="Tokens of which a caller must present one; none lets everybody in."
    )
    tls_certificate: Path | None = Field(None, description="Certificate chain, PEM.")
    tls_key: Path | None = Field(None, description="Private key of the certificate, PEM.")
    log_level: str = Field("INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")

    @field_validator("area", mode="before")
    @classmethod
    def _read_area(cls, value: Any) -> Any:  # noqa: ANN401
        """Accept "a,b,c,d", a JSON list, and a list."""
        if isinstance(value, str):
            text = value.strip()
            value = json.loads(text) if text.startswith("[") else text.split(",")
        if isinstance(value, list | tuple) and len(value) == len(Area._fields):
            area = Area(*(float(bound) for bound in value))
            Frame.of(area)  # raises ValueError with the bound that is wrong
            return area
        raise ValueError(f"area is {value!r}, must be lon_min,lat_min,lon_max,lat_max in degrees")

    @field_validator("buffer_extra")
    @classmethod
    def _bound_buffer_extra(cls, value: int | str) -> int | str:
        if isinstance(value, int) and not 0 <= value <= BUFFER_EXTRA_MAX:
            raise ValueError(f"buffer_extra is {value}, must be auto or 0 to {BUFFER_EXTRA_MAX}")
        return value

    @field_validator("subscription_index")
    @classmethod
    def _know_subscription_index(cls, value: str) -> str:
        return _known(value, "subscription_index", SUBSCRIPTION_INDEXES)

    @field_validator("object_index")
    @classmethod
    def _know_object_index(cls, value: str) -> str:
        return _known(value, "object_index", OBJECT_INDEXES)

    @model_validator(mode="after")
    def _pair_tls(self) -> ServerSettings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key must be given together")
        return self


def _known(value: str, field: str, choices: Iterable[str]) -> str:
    if value not in choices:
        raise ValueError(f"{field} is {value!r}, must be one of {', '.join(choices)}")
    return value


def load_settings(flags: dict[str, Any], config: Path | None = None) -> ServerSettings:
    """Combine flags, environment and file.

    Raises
    ------
    pydantic.ValidationError
        If a value is wrong, naming its field.
    """

    class Settings(ServerSettings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            del dotenv_settings, file_secret_settings
            sources = (init_settings, env_settings)
            if config is None:
                return sources
            return (*sources, TomlConfigSettingsSource(settings_cls, toml_file=config))

    return Settings(**flags)
