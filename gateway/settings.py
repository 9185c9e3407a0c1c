"""The gateway's settings: flags over environment over configuration file over defaults."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from feeds.parameters import ExistingFile, Shown
from identity.setting_notes import Milliseconds
from identity.settings import (
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
    is_loopback,
    require_pair,
    require_security,
)
from nearcast.address import AddressError, address_texts, grpc_target

_KEEPALIVE_MS = 240_000
"""As between server and device: a phone's own pings come first."""

_PORT = 7480


def targets_of(server: str) -> list[str]:
    """Return the addresses in the setting `server`.

    Raises
    ------
    AddressError
        If one of them is not valid.
    """
    return [grpc_target(text) for text in address_texts(server)]


class GatewaySettings(BaseSettings):
    """The settings of `nearcast gateway`.

    Every field can be set by a flag, by an environment variable `NEARCAST_GATEWAY_<FIELD>`, or in a TOML
    file.
    """

    model_config = SettingsConfigDict(
        env_prefix="NEARCAST_GATEWAY_", extra="forbid", frozen=True, hide_input_in_errors=True
    )

    host: Host = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(_PORT, ge=0, le=65535, description="Port to listen on; 0 chooses a free one.")
    server: Annotated[str, Shown(metavar="HOST[:PORT],...")] = Field(
        "127.0.0.1", description="Address of the server, or of servers of a cluster."
    )
    server_token_file: Annotated[
        tuple[ExistingFile, ...], Shown(flag="--server-token-file", metavar="FILE")
    ] = Field(
        (),
        description="File with a token of the role gateway, with which the gateway calls the server; "
        "read again whenever a stream starts. Repeat for more tenants: the token names its tenant.",
    )
    server_tls: bool = Field(
        False, description="Use TLS to the server, and verify it by the roots of the system."
    )
    server_tls_roots: ExistingFile | None = Field(
        None, description="Certificates, PEM, one of which the server's must come from; implies TLS."
    )
    server_tls_name: str = Field(
        "",
        description="Name in the server's certificate, if it is not that of its address; implies TLS.",
    )
    origins: Annotated[tuple[str, ...], Shown(flag="--origin", metavar="ORIGIN")] = Field(
        (),
        description="Origin of pages that may connect, such as https://app.example.com; repeat for more; "
        "* for any. Programs that are no browsers send none, and may connect.",
    )
    map_file: Annotated[ExistingFile | None, Shown(flag="--map-file", metavar="FILE")] = Field(
        None,
        description="Roads as GeoJSON, or a recorded run, which the page at /map/ draws. The file needs "
        "the token of an operator.",
    )
    tokens: DevTokens = ()
    jwks: Jwks = None
    token_audience: TokenAudience = "nearcast"  # noqa: S105 - no secret
    token_issuer: TokenIssuer = ""
    token_skew_s: TokenSkew = 30.0
    tenants: Tenants = ()
    device_rate: DeviceRate = 50.0
    connections_max: int = Field(20_000, ge=1, description="Connections; those beyond are closed.")
    address_connections_max: int = Field(
        1_000,
        ge=0,
        description="Connections of one address; those beyond are closed; 0 for any number, as behind a "
        "proxy.",
    )
    keepalive_ms: Milliseconds = Field(
        _KEEPALIVE_MS, ge=100, description="Between pings on a WebSocket that is silent."
    )
    tls_certificate: TlsCertificate = None
    tls_key: TlsKey = None
    insecure: bool = Field(
        False, description="Listen beyond this machine although there are no TLS or no tokens."
    )
    metrics_port: int | None = Field(
        None, ge=0, le=65535, description="Port for Prometheus, over HTTP; 0 chooses a free one."
    )
    metrics_host: Host = Field("127.0.0.1", description="Address on which it listens.")
    log_format: LogFormat = "text"
    log_level: LogLevel = "INFO"

    @property
    def has_server_tls(self) -> bool:
        """Whether the connections to the server are encrypted."""
        return self.server_tls or self.server_tls_roots is not None or bool(self.server_tls_name)

    @field_validator("server")
    @classmethod
    def _know_server(cls, value: str) -> str:
        try:
            targets_of(value)
        except AddressError as error:
            raise ValueError(f"server is {value!r}, must be {error.limit}") from None
        return value

    @field_validator("origins")
    @classmethod
    def _know_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            parts = urlsplit(origin)
            if origin not in ("*", f"{parts.scheme}://{parts.netloc}"):
                raise ValueError(f"origins has {origin!r}, must have *, or such as https://example.com")
        return value

    @model_validator(mode="after")
    def _require_security(self) -> GatewaySettings:
        require_pair(self.tls_certificate, self.tls_key)
        require_security(
            self.host,
            has_tls=self.tls_certificate is not None,
            has_tokens=self.jwks is not None or bool(self.tokens),
            insecure=self.insecure,
        )
        return self

    @model_validator(mode="after")
    def _require_tls_for_tokens(self) -> GatewaySettings:
        hosts = [target.rpartition(":")[0] for target in targets_of(self.server)]
        if not self.has_server_tls and not self.insecure and not all(is_loopback(host) for host in hosts):
            raise ValueError(
                f"server is {self.server!r}, must be of this machine without TLS: tokens would be in the "
                "clear; give --server-tls or --server-tls-roots, or say --insecure"
            )
        return self

    @model_validator(mode="after")
    def _require_own_token(self) -> GatewaySettings:
        if self.jwks is not None and not self.server_token_file:
            raise ValueError("server_token_file is none, must be the gateway's own token with --jwks")
        return self
