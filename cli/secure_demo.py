"""What a demo needs for TLS and tokens: a certificate, keys and a token of its own, for a day."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nearcast import Tls

_TOKEN_S = 86_400.0


class Secured(NamedTuple):
    """How the server and those who speak to it are told.

    Parameters
    ----------
    flags
        Of the server.
    token
        Of a gateway, publisher and operator in one, as a replay is.
    tls
        How its certificate is verified.
    """

    flags: tuple[str, ...]
    token: str
    tls: Tls


def secured(folder: Path) -> Secured:
    """Write a certificate and keys into a folder; return how they are used.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    from nearcast import Tls  # noqa: PLC0415
    from server.identity.issuer import Issuer  # noqa: PLC0415
    from server.identity.self_signed import write_self_signed  # noqa: PLC0415
    from server.principal import Role  # noqa: PLC0415

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificate, key, key_set = (folder / name for name in ("chain.pem", "key.pem", "keys.json"))
    write_self_signed(certificate, key)
    issuer = Issuer()
    key_set.write_text(issuer.key_set(), encoding="utf-8")
    # A replay is all devices at once, as fast as can be.
    flags = (f"--tls-certificate={certificate}", f"--tls-key={key}", f"--jwks={key_set}")
    rates = tuple(f"--{role}-rate=1000000" for role in ("gateway", "publisher", "operator"))
    roles = [Role.GATEWAY, Role.PUBLISHER, Role.OPERATOR]
    token = issuer.token("demo", roles, ttl_s=_TOKEN_S)
    return Secured(flags + rates, token, Tls(certificate.read_bytes()))
