"""Accounts of NATS that are signed: an operator, an account and a user, with a file of credentials."""

from __future__ import annotations

import base64
import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

_OPERATOR, _ACCOUNT, _USER, _SEED = 14 << 3, 0, 20 << 3, 18 << 3
"""Prefixes of NATS's keys."""
_UNLIMITED = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
_STORAGE = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)


class _Key:
    def __init__(self, prefix):
        self._key = Ed25519PrivateKey.generate()
        self._prefix = prefix
        raw = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.public = _encoded(bytes([prefix]) + raw)

    @property
    def seed(self):
        raw = self._key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        prefix = bytes([_SEED | self._prefix >> 5, (self._prefix & 31) << 3])
        return _encoded(prefix + raw)

    def statement(self, about, kind, expiry_s=None, **claims):
        """Return a signed JWT about another key."""
        body = {"iat": 1_700_000_000, "iss": self.public, "sub": about.public, "name": kind}
        body |= {} if expiry_s is None else {"exp": expiry_s}
        body["nats"] = {"type": kind, "version": 2, **claims}
        body["jti"] = hashlib.sha256(json.dumps(body).encode()).hexdigest()
        parts = [_url(json.dumps(one)) for one in ({"typ": "JWT", "alg": "ed25519-nkey"}, body)]
        signature = self._key.sign(".".join(parts).encode())
        return ".".join([*parts, _url(signature)])


def signed_account():
    """Return the configuration of a server, and a function that makes the text of a file of credentials.

    The function takes the time of expiry in seconds since 1970, if there is one.
    """
    operator, account, user, system = map(_Key, (_OPERATOR, _ACCOUNT, _USER, _ACCOUNT))
    of_account = operator.statement(account, "account", limits={**_UNLIMITED, **_STORAGE})
    of_system = operator.statement(system, "account", limits=_UNLIMITED)
    configuration = (
        f"operator: {operator.statement(operator, 'operator', system_account=system.public)}\n"
        f"system_account: {system.public}\n"
        "resolver: MEMORY\n"
        f"resolver_preload: {{ {account.public}: {of_account}, {system.public}: {of_system} }}\n"
    )

    def credentials(expiry_s=None):
        jwt = account.statement(user, "user", expiry_s, subs=-1, data=-1, payload=-1)
        return (
            f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
        )

    return configuration, credentials


def _encoded(data):
    return base64.b32encode(data + _checksum(data).to_bytes(2, "little")).decode().rstrip("=")


def _checksum(data):
    """Return the CRC-16 of XMODEM."""
    found = 0
    for byte in data:
        found ^= byte << 8
        for _ in range(8):
            found = (found << 1 ^ 0x1021 if found & 0x8000 else found << 1) & 0xFFFF
    return found


def _url(data):
    raw = data.encode() if isinstance(data, str) else data
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
