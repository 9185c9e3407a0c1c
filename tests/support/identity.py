"""Tokens, keys and certificates of the tests' own."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from identity.issuer import Issuer
from identity.principal import Role

_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)

KEY = Ed25519PrivateKey.generate()
ISSUER = Issuer(KEY)

SHORT_S = 3
"""Lifetime of a token that ends in a test: at least two seconds, as a token ends with a whole second."""


def token(name, *roles, **claims):
    """A token of the key that `keys_in` writes, if no other issuer is given."""
    issuer = claims.pop("by", ISSUER)
    return issuer.token(name, [Role(role) for role in roles], **claims)


def bearer(token_text):
    """The metadata of a call."""
    return (("authorization", f"Bearer {token_text}"),)


def keys_in(folder, *issuers):
    """Write a key set; return its file."""
    path = folder / "keys.json"
    keys = [one.public_key() for one in issuers or (ISSUER,)]
    path.write_text(json.dumps({"keys": keys}), encoding="utf-8")
    return path


class Authority:
    """Signs certificates, with what Python 3.13 and later require of them."""

    def __init__(self, name="tests"):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self.key.public_key(), -1, 1)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        usage = dict.fromkeys(_USAGES, False) | {"key_cert_sign": True, "crl_sign": True}
        builder = builder.add_extension(x509.KeyUsage(**usage), critical=True)
        self.certificate = builder.sign(self.key, hashes.SHA256())

    @property
    def pem(self):
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, name="localhost", begin_days=-1, end_days=1, key=None):
        """Return a certificate and its key, PEM; the key is a new one if none is given."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        builder = self._builder(subject, key.public_key(), begin_days, end_days)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return certificate.public_bytes(Encoding.PEM), pem

    def _builder(self, subject, public_key, begin_days, end_days):
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + timedelta(days=begin_days))
            .not_valid_after(now + timedelta(days=end_days))
        )
