"""Sign tokens with a key of this run."""

from __future__ import annotations

from pathlib import Path

from identity.issuer import Issuer
from identity.principal import Role

_TTL_S = 86_400.0

Metadata = tuple[tuple[str, str], ...]


class Tokens:
    """A signer of tokens.

    Parameters
    ----------
    folder
        Folder for the key set, which the server reads.
    """

    def __init__(self, folder: Path) -> None:
        self._issuer = Issuer()
        self.path = folder / "keys.json"
        self.path.write_text(self._issuer.key_set(), encoding="utf-8")

    def text(self, name: str, role: Role, tenant: str = "") -> str:
        """Return a token."""
        return self._issuer.token(name, [role], tenant=tenant, ttl_s=_TTL_S)


def metadata(token: str) -> Metadata:
    """Return the metadata of a call with a token; none for a caller without one."""
    return (("authorization", f"Bearer {token}"),) if token else ()
