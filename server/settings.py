"""The server's settings: flags over environment over configuration file over defaults.

Each is declared once, here: the command line makes its flags and its help from the fields
(`cli/options.py`).
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_settings import NoDecode

from feeds.parameters import ExistingFile, Shown
from feeds.redis.address import RedisAddress, is_redis
from identity.setting_notes import (
    Days,
    Hours,
    InRealTime,
    Metres,
    MetresPerSecond,
    Milliseconds,
    PerSecond,
)
from identity.settings import (
    RATE_MAX,
    DeviceRate,
    DevTokens,
    Host,
    Jwks,
    LogFormat,
    LogLevel,
    Tenants,
    TlsCertificate,
    TlsKey,
    TokenAudience,
    TokenIssuer,
    TokenSkew,
    combined,
    require_pair,
    require_security,
)
from index.catalogue import (
    DEFAULT_CLAUSE_INDEX,
    DEFAULT_MOVING_INDEX,
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    KINDS,
)
from index.entry import NO_INDEX
from nearcast.limits import DEFAULT_LIMITS, SPEED_MAX_MPS
from safe_region.earth.frame import Area, Frame
from server.limits import KEEPALIVE_MS
from server.log_settings import LogSettings

BUFFER_EXTRA_MAX = 1000
"""Beyond this number, a buffer costs more than the reports it saves."""

_BUFFER_EXTRA = f"auto or 0 to {BUFFER_EXTRA_MAX}"
_COST_MAX = 1e9

_AREA_M_MIN = 1.0
"""A narrower service area is a mistake: positions of devices are off by metres."""

_LEASE_MS = 600_000
"""Ten minutes: long for a phone that sleeps between two pings, short for counting devices."""

_PORT_MAX = 65_535
_ADVERTISED = re.compile(r"(?:[^\s:/]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})")

_OF_LOG = set(LogSettings.model_fields) - {"log_stream"}
"""Settings of a log that is somewhere else."""

_RETENTION_DAYS = 90.0
"""A quarter of a year: a device that reconnects later has most likely reinstalled the app."""


def _index_description(setting: str) -> str:
    kind = KINDS[setting]
    without = f"; with {NO_INDEX}, {kind.without}" if kind.without else ""
    return f"Index of {kind.name}: {kind.what}{without}; others: `nearcast indexes`."


class ServerSettings(LogSettings):
    """The settings of `nearcast serve`.

    Every field can be set by a flag, by an environment variable `NEARCAST_<FIELD>`, or in a TOML file.
    Its description has neither default nor bounds nor unit: the help adds them.
    """

    host: Host = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(7433, ge=0, le=65535, description="Port to listen on; 0 chooses a free one.")
    area: Annotated[Area, NoDecode, Shown(unit="degrees", metavar="LON,LAT,LON,LAT")] = Field(
        description="Service area: west, south, east, north."
    )
    store: Path = Field(
        Path("nearcast.db"), description="Database file; ':memory:' keeps nothing after the end."
    )
    create: bool = Field(
        False,
        description="Create the store and its parent folders if it does not exist. Without this, a "
        "missing store is an error, so that a mistyped path does not start an empty server.",
    )
    accept_loss: bool = Field(
        False,
        description="Start once with the intact part of a damaged store, and log the loss. Without "
        "this, the loss of acknowledged data is an error.",
    )
    virtual_time: bool = Field(False, description="Use virtual time, which AdvanceClock advances.")
    buffer_extra: Annotated[int | Literal["auto"], Shown(limit=_BUFFER_EXTRA)] = Field(
        "auto",
        description="Objects beyond k that a device holds: the more, the fewer reports. auto chooses "
        "the number with the least cost for each subscription and anchor.",
    )
    report_cost: float = Field(
        2.0, ge=0.0, le=_COST_MAX, description="Price of a report and its response."
    )
    object_cost: float = Field(1.0, ge=0.0, le=_COST_MAX, description="Price of an object sent.")
    held_cost: float = Field(
        0.0002, ge=0.0, le=_COST_MAX, description="Price of a second of holding an object."
    )
    buffer_extra_max: int = Field(32, ge=0, le=BUFFER_EXTRA_MAX, description="Maximum that auto chooses.")
    ahead: float = Field(
        0.9,
        ge=0.0,
        le=1.0,
        description="Fraction used of the distance by which an anchor may lie ahead of a moving device; "
        "0 for none.",
    )
    assumed_speed_mps: MetresPerSecond = Field(
        10.0, ge=0.0, le=SPEED_MAX_MPS, description="Assumed speed of a device until its speed is known."
    )
    margin_buffer_max: int = Field(
        200,
        ge=0,
        le=BUFFER_EXTRA_MAX,
        description="Maximum number of objects beyond k that a device holds to cover the margin of its "
        "position.",
    )
    margin_m_max: Metres = Field(
        DEFAULT_LIMITS.margin_m_max,
        ge=0.0,
        allow_inf_nan=False,
        description="Maximum margin of a position.",
    )
    lease_ms: Milliseconds = Field(
        default_factory=InRealTime(_LEASE_MS),
        ge=0,
        description="Lease: a device that sends nothing for this time is detached and parked; 0 for no "
        "lease.",
    )
    subscription_retention_days: Days = Field(
        default_factory=InRealTime(_RETENTION_DAYS),
        ge=0.0,
        le=36_500.0,
        description="Retention of the subscriptions of a device after it was last seen; 0 to keep them "
        "for ever.",
    )
    keepalive_ms: Milliseconds = Field(
        KEEPALIVE_MS,
        ge=100,
        description="Interval between keepalive pings on an idle connection. A connection without a "
        "response for as long, at most ten seconds, is closed.",
    )
    late_ms: Milliseconds = Field(
        1_000, ge=0, description="Deltas that wait longer before they are written are counted as late."
    )
    stationary_buffer: Literal["cost", "cskyband", "skyband", "kmax"] = Field(
        "cost",
        description="Buffer that the server holds beyond the results of subscriptions in the mode "
        "STATIONARY: with the least total cost, with the least cost as in Skype, objects "
        "with 95 % of the k-th best score, or three times k.",
    )
    subscription_index: str = Field(
        DEFAULT_SUBSCRIPTION_INDEX, description=_index_description("subscription_index")
    )
    object_index: str = Field(DEFAULT_OBJECT_INDEX, description=_index_description("object_index"))
    clause_index: str = Field(DEFAULT_CLAUSE_INDEX, description=_index_description("clause_index"))
    moving_index: str = Field(DEFAULT_MOVING_INDEX, description=_index_description("moving_index"))
    source: Annotated[str, Shown(metavar="FOLDER|redis://...", is_secret=True)] = Field(
        "",
        description="Source of objects: a folder of Parquet files, which are read in the order of their "
        "names, or redis://host:port/database/feed?streams=1. In a cluster, all nodes have the same one, "
        "and one of them reads it at a time.",
    )
    sink: Annotated[str, Shown(metavar="FOLDER|redis://...", is_secret=True)] = Field(
        "",
        description="Sink: a feed that receives every publication, retraction and expiry of an object, "
        "in order, at least once.",
    )
    processes: int = Field(
        1,
        ge=1,
        le=64,
        description="Number of nodes on this machine, each a process with a port of its own from --port "
        "on, over a log on this machine's disk; the store is then a folder. With 1, a server by itself.",
    )
    log_keep_hours: Hours = Field(
        24.0,
        ge=0.0,
        le=8_760.0,
        description="For how long the log keeps its messages in any case. A node that is away for longer "
        "copies the store of another one when it is back. Of all nodes, the setting of the first one by "
        "address is in force.",
    )
    advertise: str = Field(
        "",
        description="Address, as host:port, at which devices reach this node of a cluster; its "
        "certificate has this name. By default the host and port on which it listens, or the name of the "
        "machine if it listens on all addresses.",
    )
    tokens: DevTokens = ()
    jwks: Jwks = None
    token_audience: TokenAudience = "nearcast"  # noqa: S105 - no secret
    token_issuer: TokenIssuer = ""
    token_skew_s: TokenSkew = 30.0
    tenants: Tenants = ()
    device_rate: DeviceRate = 50.0
    gateway_rate: PerSecond = Field(
        50_000.0, ge=0.1, le=RATE_MAX, description="Operations of a gateway, for all its devices."
    )
    publisher_rate: PerSecond = Field(
        10_000.0, ge=0.1, le=RATE_MAX, description="Operations of a publisher: objects and calls."
    )
    operator_rate: PerSecond = Field(100.0, ge=0.1, le=RATE_MAX, description="Operations of an operator.")
    device_share: float = Field(
        0.05,
        ge=0.001,
        le=1.0,
        description="Fraction of the time of the server's event loop that a device may use, on average; "
        "1 for no limit.",
    )
    gateway_share: float = Field(1.0, ge=0.001, le=1.0, description="The same for a gateway.")
    publisher_share: float = Field(1.0, ge=0.001, le=1.0, description="The same for a publisher.")
    operator_share: float = Field(0.25, ge=0.001, le=1.0, description="The same for an operator.")
    tenant_share: float = Field(
        1.0, ge=0.001, le=1.0, description="The same for all callers of a tenant together."
    )
    publisher_objects_max: int = Field(
        1_000_000,
        ge=0,
        description="Live objects of a publisher with a signed token; 0 for no limit.",
    )
    publisher_bytes_max: int = Field(
        1024**3,
        ge=0,
        description="Bytes of the payloads of the live objects of a publisher with a signed token; 0 for "
        "no limit.",
    )
    tenant_objects_max: int = Field(0, ge=0, description="Live objects of a tenant; 0 for no limit.")
    tenant_bytes_max: int = Field(
        0, ge=0, description="Bytes of the payloads of a tenant's live objects; 0 for no limit."
    )
    tenant_subscriptions_max: int = Field(
        0, ge=0, description="Subscriptions of all devices of a tenant; 0 for no limit."
    )
    connections_max: int = Field(
        16_384, ge=1, description="Maximum number of connections; further ones are closed."
    )
    tls_certificate: TlsCertificate = None
    tls_key: TlsKey = None
    tls_client_roots: ExistingFile | None = Field(
        None,
        description="Root certificates of clients, PEM; without them, clients need no certificate.",
    )
    tls_node_roots: ExistingFile | None = Field(
        None,
        description="Root certificates of the other nodes of a cluster, PEM, whose stores this node "
        "copies; by default those of the system.",
    )
    insecure: bool = Field(False, description="Listen beyond this machine without TLS or without tokens.")
    reflection: bool = Field(
        False,
        description="Offer server reflection, which lists services and messages, for tools such "
        "as grpcurl.",
    )
    metrics_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="Port of the metrics for Prometheus, over HTTP; 0 chooses a free one.",
    )
    metrics_host: Host = Field(
        "127.0.0.1",
        description="Address of the metrics port; anyone who can reach it can read the metrics.",
    )
    trace_share: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        description="Fraction of publish requests of which one object is traced to the devices, with "
        "OpenTelemetry; needs the extra 'tracing'.",
    )
    trace_endpoint: Annotated[str, Shown(metavar="URL", is_secret=True)] = Field(
        "http://127.0.0.1:4318/v1/traces", description="URL to which traces are sent, as OTLP over HTTP."
    )
    log_format: LogFormat = "text"
    log_level: LogLevel = "INFO"

    @field_validator("trace_endpoint")
    @classmethod
    def _know_trace_endpoint(cls, value: str) -> str:
        with contextlib.suppress(ValueError):  # of a host or port that is none
            parts = urlsplit(value)
            if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
                return value
        raise ValueError("must be like http://127.0.0.1:4318/v1/traces, or with https")

    @field_validator("area", mode="before")
    @classmethod
    def _read_area(cls, value: Any) -> Any:  # noqa: ANN401
        """Accept "a,b,c,d", a JSON list, and a list."""
        try:
            area = Area.of(_listed(value))
        except (ValueError, RecursionError):
            raise ValueError(
                f"area is {value!r}, must be lon_min,lat_min,lon_max,lat_max in degrees"
            ) from None
        width_m, height_m = Frame.of(area).size_m  # raises ValueError with the bound that is wrong
        if min(width_m, height_m) < _AREA_M_MIN:
            raise ValueError(
                f"area is {width_m:.3g} m wide and {height_m:.3g} m high, must be at least "
                f"{_AREA_M_MIN:g} m wide and high"
            )
        return area

    @field_validator("buffer_extra")
    @classmethod
    def _bound_buffer_extra(cls, value: int | str) -> int | str:
        if isinstance(value, int) and not 0 <= value <= BUFFER_EXTRA_MAX:
            raise ValueError(f"buffer_extra is {value}, must be {_BUFFER_EXTRA}")
        return value

    @field_validator(*KINDS)
    @classmethod
    def _know_index(cls, value: str, info: ValidationInfo) -> str:
        kind = KINDS[str(info.field_name)]
        if value not in kind.names:
            raise ValueError(f"{kind.setting} is {value!r}, must be {kind.limit(value)}")
        return value

    @field_validator("advertise")
    @classmethod
    def _know_port(cls, value: str) -> str:
        found = _ADVERTISED.fullmatch(value)
        if value and (found is None or not 1 <= int(found[1]) <= _PORT_MAX):
            raise ValueError(f"must be host:port with a port from 1 to {_PORT_MAX}")
        return value

    @field_validator("source", "sink")
    @classmethod
    def _know_address(cls, value: str) -> str:
        if is_redis(value):
            RedisAddress.parse(value)
        elif "://" in value:  # it may have a password: it is not shown
            raise ValueError("must be a folder, or redis://host:port/database/feed?streams=1")
        return value

    @model_validator(mode="after")
    def _keep_feeds_apart(self) -> ServerSettings:
        if self.source and self.source == self.sink:
            raise ValueError("sink is the source, must be another feed")
        return self

    @model_validator(mode="after")
    def _keep_to_the_log(self) -> ServerSettings:
        others = {"accept_loss": self.accept_loss, "trace_share": self.trace_share}
        cause = "--log" if self.log else "--processes" if self.processes > 1 else ""
        for name, value in others.items():
            if cause and value:
                raise ValueError(f"{name} must not be set with {cause}")
        return self

    @model_validator(mode="after")
    def _keep_to_processes(self) -> ServerSettings:
        if self.processes == 1:
            return self
        for name in sorted(self.model_fields_set & _OF_LOG):
            raise ValueError(f"{name} must not be set with --processes, which has a log of its own")
        most = _PORT_MAX + 1 - self.processes
        limit = f"at most {most} with {self.processes} processes"
        for name, port in (("port", self.port), ("metrics_port", self.metrics_port)):
            if port and port > most:
                raise ValueError(f"{name} is {port}, must be {limit}")
        if self.advertise and int(self.advertise.rpartition(":")[2]) > most:
            raise ValueError(f"advertise is {self.advertise!r}, must have a port of {limit}")
        return self

    @model_validator(mode="after")
    def _pair_tls(self) -> ServerSettings:
        require_pair(self.tls_certificate, self.tls_key)
        if self.tls_node_roots is not None and self.tls_certificate is None:
            raise ValueError("tls_node_roots needs --tls-certificate and --tls-key")
        if self.tls_client_roots is not None and self.tls_certificate is None:
            raise ValueError("tls_client_roots needs --tls-certificate and --tls-key")
        return self

    @model_validator(mode="after")
    def _keep_tenants_apart(self) -> ServerSettings:
        if self.tenants and self.jwks is None:
            raise ValueError("tenants needs --jwks: only signed tokens name the tenant of a caller")
        if self.tenants and (self.source or self.sink):
            raise ValueError("tenants must be empty with --source or --sink, which belong to no tenant")
        return self

    @model_validator(mode="after")
    def _require_security(self) -> ServerSettings:
        require_security(
            self.host,
            has_tls=self.tls_certificate is not None,
            has_tokens=self.jwks is not None or bool(self.tokens),
            insecure=self.insecure,
        )
        return self


def _listed(value: Any) -> Any:  # noqa: ANN401
    """Return the items of a text between commas, or of a JSON list."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    return json.loads(text) if text.startswith("[") else text.split(",")


def load_settings(flags: dict[str, Any], config: Path | None = None) -> ServerSettings:
    """Combine flags, environment and file.

    Raises
    ------
    pydantic.ValidationError
        If a value is wrong, naming its field.
    """
    return combined(ServerSettings, flags, config)
