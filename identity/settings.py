"""Settings of identity and of the log: declared once, for the server and for the gateway.

Each is a type with its description and bounds; the settings of a program give name and default.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, TomlConfigSettingsSource

from feeds.parameters import ExistingFile, Shown
from identity.setting_notes import PerSecond, Seconds
from nearcast.checks import is_name

RATE_MAX = 1e9

_Settings = TypeVar("_Settings", bound=BaseSettings)

TENANT = "1 to 64 printable characters without blanks"
_TENANT_LENGTH_MAX = 64


def is_tenant(name: str) -> bool:
    """Return whether a text may be the name of a tenant."""
    return is_name(name, _TENANT_LENGTH_MAX) and " " not in name


def _named(value: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of tenants that are valid and different from each other."""
    for name in value:
        if not is_tenant(name):
            raise ValueError(f"tenants has {name!r}, must have {TENANT}")
    if len(set(value)) != len(value):
        raise ValueError("tenants must be different from each other")
    return value


def bare_host(value: str) -> str:
    """Return the host of a listener, without the [ ] of an IPv6 address."""
    host = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if not host:
        raise ValueError("must be an address or a name of this machine")
    return host


Host = Annotated[str, AfterValidator(bare_host)]
DevTokens = Annotated[
    tuple[str, ...],
    Shown(flag="--dev-token", is_secret=True),
    Field(
        description="Secret for development: a caller with it may do everything in the default tenant; "
        "repeat for more. Without tokens and keys, every caller may. On a command line "
        "other users of this machine can see it; in the variable or the file they cannot.",
    ),
]
Jwks = Annotated[
    ExistingFile | None,
    Field(
        description="Public keys of signed tokens, a JSON Web Key Set; reloaded when it changes.",
    ),
]
TokenAudience = Annotated[str, Field(min_length=1, description="Audience of signed tokens.")]
TokenIssuer = Annotated[str, Field(description="Issuer of signed tokens; empty for any issuer.")]
TokenSkew = Annotated[
    Seconds,
    Field(ge=0.0, le=600.0, description="Tolerated clock difference to the issuer of tokens."),
]
Tenants = Annotated[
    tuple[str, ...],
    Shown(flag="--tenant", limit=TENANT),
    AfterValidator(_named),
    Field(description="Tenant that tokens may name, besides the default one; repeat for more."),
]
DeviceRate = Annotated[
    PerSecond,
    Field(ge=0.1, le=RATE_MAX, description="Operations of a device: reports, calls and so on."),
]
TlsCertificate = Annotated[
    ExistingFile | None, Field(description="Certificate chain, PEM; reloaded when it changes.")
]
TlsKey = Annotated[ExistingFile | None, Field(description="Private key of the certificate, PEM.")]
LogFormat = Annotated[
    Literal["text", "json"], Field(description="Format of the log: text, or one JSON object per line.")
]
LogLevel = Annotated[
    Literal["DEBUG", "INFO", "WARNING", "ERROR"],
    Field(description="Minimum level of log entries. The log goes to standard error."),
]


def require_pair(certificate: object, key: object) -> None:
    """Raise ValueError unless certificate and key are given together."""
    if certificate is not None and key is None:
        raise ValueError("tls_certificate needs --tls-key: they must be given together")
    if key is not None and certificate is None:
        raise ValueError("tls_key needs --tls-certificate: they must be given together")


def require_security(host: str, *, has_tls: bool, has_tokens: bool, insecure: bool) -> None:
    """Raise ValueError if others can reach an address that has no TLS or no tokens."""
    if not (has_tls and has_tokens) and not insecure and not is_loopback(host):
        raise ValueError(
            f"host is {host!r}, must be of this machine without TLS and tokens: give "
            "--tls-certificate, --tls-key and --jwks, or --insecure"
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address; a name may be of any machine."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return False


def combined(
    settings: type[_Settings],
    flags: dict[str, Any],
    config: Path | None = None,
    *,
    reads_environment: bool = True,
) -> _Settings:
    """Combine flags, environment and file into settings.

    Parameters
    ----------
    settings
        The declaration of the settings.
    flags
        Values of flags by field.
    config
        Configuration file, if there is one.
    reads_environment
        Whether environment variables count.

    Raises
    ------
    pydantic.ValidationError
        If a value is wrong, naming its field.
    """
    found: _Settings = _with_sources(settings, config, reads_environment=reads_environment)(**flags)
    return found


@functools.lru_cache(maxsize=8)
def _with_sources(
    settings: type[_Settings], config: Path | None, *, reads_environment: bool
) -> type[_Settings]:
    """Return a declaration with its sources. Some are kept: pydantic builds one in 6 ms."""

    class Settings(settings):  # type: ignore[valid-type, misc]
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
            sources = (init_settings, env_settings) if reads_environment else (init_settings,)
            if config is None:
                return sources
            return (*sources, TomlConfigSettingsSource(settings_cls, toml_file=config))

    return Settings
