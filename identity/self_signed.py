"""A self-signed certificate: for a demo on this machine, or for a trial on a few."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from identity.private_file import removed_on_error, write_private

THIS_MACHINE = ("localhost", "127.0.0.1")

_BACKDATED = timedelta(minutes=5)
"""For clients whose clocks are slightly behind."""


def write_self_signed(
    certificate: Path, key: Path, hosts: Sequence[str] = THIS_MACHINE, *, days: int = 1
) -> None:
    """Write a self-signed certificate, and its private key: both files, or none.

    Clients verify the server by the certificate itself, as the only root that they trust.

    Parameters
    ----------
    certificate, key
        Files, PEM; existing ones are replaced. Only the owner can read the key.
    hosts
        Names and IP addresses under which clients reach the server; at least one.
    days
        How long it is valid.

    Raises
    ------
    OSError
        If a file cannot be written.
    ValueError
        If a host is no valid name for a certificate.
    """
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(
            x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(private, hashes.SHA256())
    )
    key.unlink(missing_ok=True)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_private(key, pem)
    with removed_on_error(key), removed_on_error(certificate):
        certificate.write_bytes(signed.public_bytes(Encoding.PEM))


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
