"""`nearcast token`: signed tokens for development."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.failures import reported
from cli.numbers import FiniteRange

if TYPE_CHECKING:
    from identity.issuer import Issuer

_ROLES = ("device", "gateway", "publisher", "operator")
_TTL_S_MAX = 1e9
"""Some 31 years: servers refuse tokens that expire after the year 5138."""
_PATH = click.Path(dir_okay=False, path_type=Path)


@click.command(epilog="Example: nearcast token device-7 --role device")
@click.argument("name")
@click.option(
    "--role",
    "roles",
    type=click.Choice(_ROLES),
    multiple=True,
    required=True,
    help="Role of the bearer; repeat for more.",
)
@click.option("--tenant", default="", help="Tenant of the bearer; the default tenant if omitted.")
@click.option(
    "--ttl-s",
    type=FiniteRange(1.0, _TTL_S_MAX),
    default=3600.0,
    show_default=True,
    help="Lifetime of the token in seconds.",
)
@click.option(
    "--out",
    type=_PATH,
    help="Write the token to this new file, readable by its owner only, in place of standard output.",
)
@click.option(
    "--audience", default="nearcast", show_default=True, help="The --token-audience of the server."
)
@click.option("--issuer", default="", help="The --token-issuer of the server, if it has one.")
@click.option(
    "--key",
    type=_PATH,
    default=Path("nearcast-key.pem"),
    show_default=True,
    help="Private key that signs the token.",
)
@click.option(
    "--jwks",
    type=_PATH,
    default=Path("nearcast-keys.json"),
    show_default=True,
    help="Key set for --jwks of the server. A new key is added to it; without such a file, the command "
    "writes one.",
)
def token(  # noqa: PLR0913 - an option each
    name: str,
    roles: tuple[str, ...],
    tenant: str,
    ttl_s: float,
    audience: str,
    issuer: str,
    key: Path,
    jwks: Path,
    out: Path | None,
) -> None:
    """Print a token for NAME, the id of a device, gateway, publisher or operator.

    For development: in production an identity provider signs. If there is no key, the command creates
    one, and adds it to the key set for the server.
    """
    from identity.principal import Role  # noqa: PLC0415
    from identity.private_file import write_private  # noqa: PLC0415
    from identity.settings import TENANT, is_tenant  # noqa: PLC0415
    from identity.tokens import NAME_LENGTH_MAX, is_name  # noqa: PLC0415
    from identity.watched_file import FileError  # noqa: PLC0415

    if not is_name(name):
        raise click.BadParameter(
            f"{name!r} must be 1 to {NAME_LENGTH_MAX} printable characters", param_hint="NAME"
        )
    if tenant and not is_tenant(tenant):
        raise click.BadParameter(f"{tenant!r} must have {TENANT}", param_hint="--tenant")
    with reported(FileError, OSError):
        signer = _signer(key, jwks)
    granted = [Role(role) for role in roles]
    found = signer.token(name, granted, tenant=tenant, audience=audience, issuer=issuer, ttl_s=ttl_s)
    if out is None:
        click.echo(found)
        return
    try:
        write_private(out, f"{found}\n".encode())
    except FileExistsError:
        raise click.ClickException(f"--out {out} exists, must be absent: remove it first") from None
    except OSError as error:
        raise click.ClickException(f"--out {out} cannot be written: {error.strerror}") from None


def _signer(key: Path, jwks: Path) -> Issuer:
    """Return the issuer with the key in a file; write a new key, and the key set, if they are absent.

    A set that exists gets new keys only: an existing key may have been removed from it.
    """
    from identity.issuer import Issuer  # noqa: PLC0415
    from identity.private_file import removed_on_error  # noqa: PLC0415

    use = f"for nearcast serve --jwks {jwks}"
    if key.exists():
        signer = Issuer.read(key)
        if not jwks.exists():
            signer.add_to(jwks)
            click.echo(f"made {jwks} {use}", err=True)
        return signer
    signer, is_new = Issuer(), not jwks.exists()
    signer.write(key)
    with removed_on_error(key):
        signer.add_to(jwks)
    done = f"made {key}, and {jwks}" if is_new else f"made {key}, added it to {jwks}"
    click.echo(f"{done} {use}", err=True)
    return signer
