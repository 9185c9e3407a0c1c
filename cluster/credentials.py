"""Credentials files of NATS: a JWT with the rights of a user, and the seed of the user's key.

The seed is 32 bytes of Ed25519 after two bytes of prefix and before two of a checksum, in base32.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----\s+(\S+)\s+-+END \1-+")
_JWT, _SEED = "NATS USER JWT", "USER NKEY SEED"
_PREFIX_BYTES, _SEED_BYTES = 2, 32
_ENCODED_LENGTH = 58


class Credentials(NamedTuple):
    """The content of a file."""

    jwt: str
    key: Ed25519PrivateKey

    def signature(self, nonce: str) -> bytes:
        """Return the signature of what a server has sent, in base64."""
        return base64.b64encode(self.key.sign(nonce.encode()))


def read_credentials(path: Path) -> Credentials:
    """Return the credentials in a file.

    Raises
    ------
    ValueError
        If there are none.
    OSError
        If it cannot be read.
    """
    blocks = dict(_BLOCK.findall(path.read_text(encoding="utf-8")))
    seed = blocks.get(_SEED, "")
    if _JWT not in blocks or len(seed) != _ENCODED_LENGTH:
        raise ValueError("there must be a JWT and a seed of a user")
    raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    key = Ed25519PrivateKey.from_private_bytes(raw[_PREFIX_BYTES : _PREFIX_BYTES + _SEED_BYTES])
    return Credentials(blocks[_JWT], key)
