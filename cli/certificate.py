"""`nearcast certificate`: a self-signed certificate for trials."""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path

import click

from cli.failures import WrongUseError, reported

_PATH = click.Path(dir_okay=False, path_type=Path)
_DAYS_MAX = 825
_NAME_LENGTH_MAX = 64
_NAME = re.compile(rf"[A-Za-z0-9._*-]{{1,{_NAME_LENGTH_MAX}}}")


@click.command(epilog="Example: nearcast certificate localhost 127.0.0.1 city.example.org")
@click.argument("hosts", nargs=-1, required=True)
@click.option(
    "--days",
    type=click.IntRange(1, _DAYS_MAX),
    default=30,
    show_default=True,
    help="Validity of the certificate.",
)
@click.option(
    "--out",
    "certificate_file",
    type=_PATH,
    default=Path("chain.pem"),
    show_default=True,
    help="Certificate to write, for --tls-certificate of the server and --tls-roots of clients.",
)
@click.option(
    "--key",
    "key_file",
    type=_PATH,
    default=Path("key.pem"),
    show_default=True,
    help="Private key to write, for --tls-key of the server.",
)
def certificate(hosts: tuple[str, ...], days: int, certificate_file: Path, key_file: Path) -> None:
    """Write a TLS certificate for HOSTS, the names and addresses by which clients reach the server.

    The certificate is self-signed, so clients need the file to verify the server. Use it for trials; in
    production a certificate authority signs. Existing files are not replaced.
    """
    from identity.self_signed import write_self_signed  # noqa: PLC0415

    hosts = tuple(map(_checked, hosts))
    if certificate_file.resolve() == key_file.resolve():
        raise WrongUseError(f"--key is {key_file}, must be another file than --out")
    for path in (certificate_file, key_file):
        if path.exists():
            raise click.ClickException(f"{path} exists: move it away, or choose another name")
    with reported(OSError, ValueError):
        write_self_signed(certificate_file, key_file, hosts, days=days)
    click.echo(f"{certificate_file} and {key_file}, valid for {days} days, for {', '.join(hosts)}")
    click.echo(f"server:  nearcast serve --tls-certificate {certificate_file} --tls-key {key_file} ...")
    click.echo(f"clients: --tls-roots {certificate_file}, or Tls(root_certificates=...) in the SDK")


def _checked(host: str) -> str:
    """Return a name, or an IP address without the brackets that an IPv6 address has in a URL.

    Raises
    ------
    WrongUseError
        If it is neither.
    """
    address = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return str(ip_address(address))
    except ValueError:
        if _NAME.fullmatch(host):
            return host
    raise WrongUseError(
        f"HOSTS has {host!r}, must be IP addresses, or names of 1 to {_NAME_LENGTH_MAX} letters and "
        "digits of ASCII, and . - _ *"
    )
