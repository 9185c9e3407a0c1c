"""The public keys that verify tokens: a JSON Web Key Set in a file."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jwt

from identity.watched_file import FileError, read_bytes

_log = logging.getLogger(__name__)

ALGORITHMS = frozenset(
    {"EdDSA", "ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
)
"""Asymmetric algorithms: a verifier cannot sign. The key determines the algorithm, never the token."""

_RSA_BITS_MIN = 2048
_PRIVATE = "d"
"""The member that only a private key has."""
_SHARED = "oct"
_SIGNATURES, _VERIFY = "sig", "verify"
_SHOWN_MAX = 60

Keys = Mapping[str, jwt.PyJWK]
"""By key id."""


def read_keys(path: Path) -> Keys:
    """Return the keys in a file.

    Raises
    ------
    FileError
        Naming the key and its flaw.
    """
    return parse_keys(read_bytes(path), path)


def parse_keys(content: bytes, path: Path) -> Keys:
    """Return the keys in a key set. Keys that cannot be used here are skipped and logged.

    Raises
    ------
    FileError
        If it has no usable key, or one that must not be there; naming the key and its flaw.
    """
    try:
        found = json.loads(content)
        entries = found["keys"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise FileError(f'{path} is not a JSON Web Key Set: {{"keys": [...]}}') from None
    if not isinstance(entries, list) or not entries:
        raise FileError(f"{path} has no keys, must have at least one")
    keys: dict[str, jwt.PyJWK] = {}
    unusable: list[str] = []
    for number, entry in enumerate(entries):
        where = f"{path}: keys[{number}]"
        try:
            key_id, key = _read_key(entry, where)
        except _UnusableError as error:
            unusable.append(str(error))
            continue
        if key_id in keys:
            raise FileError(f"{where}.kid is {key_id!r}, must be unique")
        keys[key_id] = key
    if not keys:
        raise FileError(f"{path} has no usable key: {unusable[0]}")
    for reason in unusable:
        _log.warning("a key is skipped: %s", reason)
    return keys


class _UnusableError(Exception):
    """A key cannot verify tokens here; others of its set may."""


def _read_key(entry: Any, where: str) -> tuple[str, jwt.PyJWK]:  # noqa: ANN401 - JSON
    if not isinstance(entry, dict):
        raise _UnusableError(f"{where} is not a JSON object")
    if _PRIVATE in entry and entry.get("kty") != _SHARED:
        raise FileError(
            f"{where} is a private key, must be a public one: only the signer of tokens has "
            "the private key"
        )
    key_id = entry.get("kid")
    if not isinstance(key_id, str) or not key_id:
        raise _UnusableError(f"{where}.kid is absent, must be a text: tokens name their key")
    where = f"{where}, of kid {_shown(key_id)} and kty {_shown(entry.get('kty'))},"
    if entry.get("kty") == _SHARED:
        raise _UnusableError(f"{where} is a shared secret, must be a public key")
    uses = entry.get("key_ops", [_VERIFY])
    if entry.get("use", _SIGNATURES) != _SIGNATURES or not isinstance(uses, list) or _VERIFY not in uses:
        raise _UnusableError(f"{where} has another use, must be for signatures")
    try:
        key = jwt.PyJWK(entry)
    except Exception as error:  # any error of the libraries
        raise _UnusableError(f"{where} is not a valid key of its type") from error
    if key.algorithm_name not in ALGORITHMS:
        algorithms = ", ".join(sorted(ALGORITHMS))
        raise _UnusableError(f"{where} has alg {_shown(key.algorithm_name)}, must be one of {algorithms}")
    size = getattr(key.key, "key_size", None)
    if entry.get("kty") == "RSA" and (size is None or size < _RSA_BITS_MIN):
        raise _UnusableError(f"{where} has {size} bits, must have at least {_RSA_BITS_MIN}")
    return key_id, key


def _shown(value: object) -> str:
    """Return a text of a key as one short line."""
    text = repr(value) if isinstance(value, str | None) else "not a text"
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 4]}...'"
