"""TLS and tokens for a demo: a certificate, keys and a token, valid for a day."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nearcast import Tls

_TOKEN_S = 86_400.0


class Secured(NamedTuple):
    """Credentials of the server and its clients.

    Parameters
    ----------
    flags
        Flags of the server.
    token
        Token with the roles gateway, publisher and operator, as a replay needs.
    tls
        How clients verify the server's certificate.
    """

    flags: tuple[str, ...]
    token: str
    tls: Tls


def secured(folder: Path) -> Secured:
    """Write a certificate and keys into a folder; return the credentials.

    Raises
    ------
    OSError
        If the files cannot be written.
    """
    from identity.issuer import Issuer  # noqa: PLC0415
    from identity.principal import Role  # noqa: PLC0415
    from identity.self_signed import write_self_signed  # noqa: PLC0415
    from nearcast import Tls  # noqa: PLC0415

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificate, key, key_set = (folder / name for name in ("chain.pem", "key.pem", "keys.json"))
    write_self_signed(certificate, key)
    issuer = Issuer()
    key_set.write_text(issuer.key_set(), encoding="utf-8")
    # A replay is all devices at once, at full speed.
    flags = (f"--tls-certificate={certificate}", f"--tls-key={key}", f"--jwks={key_set}")
    rates = tuple(f"--{role}-rate=1000000" for role in ("gateway", "publisher", "operator"))
    roles = [Role.GATEWAY, Role.PUBLISHER, Role.OPERATOR]
    token = issuer.token("demo", roles, ttl_s=_TOKEN_S)
    return Secured(flags + rates, token, Tls(certificate.read_bytes()))
