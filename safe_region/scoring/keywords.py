"""Compare keywords by one normal form, on devices and on the server."""

from __future__ import annotations

import json
import unicodedata


def normalised_keyword(keyword: str) -> str:
    """Return a keyword in Unicode NFKC, case folded and trimmed.

    Folding can denormalise, hence the second pass.
    """
    if keyword.isascii():
        return keyword.lower().strip()  # the same, three times faster
    folded = unicodedata.normalize("NFKC", keyword).casefold()
    return unicodedata.normalize("NFKC", folded).strip()


def is_text(keyword: str) -> bool:
    """Return whether a keyword can be encoded.

    JSON may escape a lone surrogate, which is not a character.
    """
    if keyword.isascii():
        return True
    try:
        keyword.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def keywords_of(text: str) -> list[str]:
    """Split a text into keywords at blanks and commas, or read a JSON list of keywords."""
    text = text.strip()
    if text.startswith("["):
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, list):
            return [str(word) for word in found]
    return text.replace(",", " ").split()
