"""The public keys that tokens are signed with: a JSON Web Key Set in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jwt

from server.identity.watched_file import FileError, read_bytes

ALGORITHMS = frozenset(
    {"EdDSA", "ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
)
"""Those in which who can verify cannot sign. The key says which one, never the token."""

_RSA_BITS_MIN = 2048
_PRIVATE = "d"
"""The member that only a private key has."""

Keys = Mapping[str, jwt.PyJWK]
"""By key id."""


def read_keys(path: Path) -> Keys:
    """Read a key set.

    Raises
    ------
    FileError
        Saying what is wrong with which key.
    """
    return parse_keys(read_bytes(path), path)


def parse_keys(content: bytes, path: Path) -> Keys:
    """Read a key set of a file.

    Raises
    ------
    FileError
        Saying what is wrong with which key.
    """
    try:
        found = json.loads(content)
        entries = found["keys"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise FileError(f'{path} is no JSON Web Key Set: {{"keys": [...]}}') from None
    if not isinstance(entries, list) or not entries:
        raise FileError(f"{path} has no keys, must have at least one")
    keys: dict[str, jwt.PyJWK] = {}
    for number, entry in enumerate(entries):
        key_id, key = _read_key(entry, f"{path}: keys[{number}]")
        if key_id in keys:
            raise FileError(f"{path}: keys[{number}].kid is {key_id!r}, must be of no other key")
        keys[key_id] = key
    return keys


def _read_key(entry: Any, where: str) -> tuple[str, jwt.PyJWK]:  # noqa: ANN401 - JSON
    if not isinstance(entry, dict):
        raise FileError(f"{where} is no JSON object")
    key_id = entry.get("kid")
    if not isinstance(key_id, str) or not key_id:
        raise FileError(f"{where}.kid is absent, must be a text: tokens name their key")
    if entry.get("kty") == "oct":
        raise FileError(f"{where} is a shared secret, must be a public key")
    if _PRIVATE in entry:
        raise FileError(f"{where} is a private key, must be a public one: it belongs to who signs")
    try:
        key = jwt.PyJWK(entry)
    except (jwt.PyJWTError, ValueError, TypeError, LookupError):
        raise FileError(f"{where} cannot be read as a key of its kind") from None
    if key.algorithm_name not in ALGORITHMS:
        raise FileError(
            f"{where}.alg is {key.algorithm_name!r}, must be one of {', '.join(sorted(ALGORITHMS))}"
        )
    size = getattr(key.key, "key_size", None)
    if entry.get("kty") == "RSA" and (size is None or size < _RSA_BITS_MIN):
        raise FileError(f"{where} has {size} bits, must have {_RSA_BITS_MIN} at least")
    return key_id, key
