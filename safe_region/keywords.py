"""How keywords are compared: one normal form, on devices and on the server."""

from __future__ import annotations

import unicodedata


def normalised_keyword(keyword: str) -> str:
    """Unicode NFKC, case folded, trimmed. Folding can denormalise, hence the second pass."""
    if keyword.isascii():
        return keyword.lower().strip()  # the same, three times faster
    folded = unicodedata.normalize("NFKC", keyword).casefold()
    return unicodedata.normalize("NFKC", folded).strip()
