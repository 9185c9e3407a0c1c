"""Signing of tokens, for development and tests; an identity provider does it in production."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from identity.keys import read_keys
from identity.principal import Role
from identity.private_file import write_private
from identity.watched_file import FileError, read_bytes

_ALGORITHM = "EdDSA"
_KEY_ID_LENGTH = 16


class Issuer:
    """Signs tokens with an Ed25519 key.

    Parameters
    ----------
    key
        The private key.
    """

    def __init__(self, key: Ed25519PrivateKey | None = None) -> None:
        self._key = key or Ed25519PrivateKey.generate()
        public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self._key_id = hashlib.sha256(public).hexdigest()[:_KEY_ID_LENGTH]

    @classmethod
    def read(cls, path: Path) -> Issuer:
        """Return an issuer with the key in a file.

        Raises
        ------
        FileError
            If there is none.
        """
        try:
            key = load_pem_private_key(read_bytes(path), password=None)
        except (ValueError, TypeError):
            raise FileError(f"{path} is not a private key in PEM without a password") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise FileError(f"{path} is a private key of another type, must be an Ed25519 key")
        return cls(key)

    def write(self, path: Path) -> None:
        """Write the private key to a new file, for its owner alone.

        Raises
        ------
        FileError
            If that is not possible; an existing file is not overwritten.
        """
        pem = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        try:
            write_private(path, pem)
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror}") from None

    def public_key(self) -> dict[str, Any]:
        """Return the public key as an entry of a JSON Web Key Set."""
        algorithm = jwt.get_algorithm_by_name(_ALGORITHM)
        public: dict[str, Any] = json.loads(algorithm.to_jwk(self._key.public_key()))
        return public | {"kid": self._key_id, "alg": _ALGORITHM, "use": "sig"}

    def key_set(self) -> str:
        """Return a JSON Web Key Set of this key."""
        return json.dumps({"keys": [self.public_key()]}, indent=2) + "\n"

    def add_to(self, path: Path) -> None:
        """Add the public key to the key set in a file; write a set of this key if there is no file.

        Raises
        ------
        FileError
            If the file has no usable key set, or cannot be written.
        """
        text = self.key_set()
        if path.exists():
            read_keys(path)
            found = json.loads(read_bytes(path))
            text = json.dumps(found | {"keys": [*found["keys"], self.public_key()]}, indent=2) + "\n"
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror}") from None

    def token(
        self,
        name: str,
        roles: Iterable[Role],
        /,
        *,
        tenant: str = "",
        audience: str = "nearcast",
        issuer: str = "",
        ttl_s: float = 3600.0,
        **claims: object,
    ) -> str:
        """Return a signed token.

        Parameters
        ----------
        name
            The id of the device, gateway, publisher or operator.
        roles
            Its roles.
        tenant
            Empty for the default one.
        audience, issuer
            The values that the server expects; an empty issuer is left out.
        ttl_s
            Lifetime of the token in seconds.
        claims
            Further claims, or replacements of these.
        """
        now_s = int(time.time())
        issued: dict[str, object] = {
            "sub": name,
            "roles": [role.value for role in roles],
            "aud": audience,
            "iat": now_s,
            "exp": int(now_s + ttl_s),
        }
        issued |= {"tenant": tenant} if tenant else {}
        issued |= {"iss": issuer} if issuer else {}
        return jwt.encode(issued | claims, self._key, _ALGORITHM, {"kid": self._key_id})
