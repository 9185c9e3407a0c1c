"""The rules of places: the tags that make a place, and its keywords.

Pure functions over the tags of one node or closed way. A place is an establishment that could publish: a
shop, an office, a sight, a place to eat. Street furniture is not a place, and neither is an unnamed
feature of a common kind.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from safe_region.scoring.keywords import normalised_keyword
from simulator.maps.vocabulary import ELISIONS, FURNITURE, NEVER, STOP_WORDS

KEYWORDS_MAX = 63
"""An object may have 64, and one of them may be its offer."""

KEYWORD_LENGTH_MAX = 64

KIND_KEYS = (
    "amenity",
    "shop",
    "tourism",
    "leisure",
    "craft",
    "office",
    "historic",
    "healthcare",
    "club",
)
"""The keys that make a place; the first that is present gives its category."""

_VALUE_KEYS = (*KIND_KEYS, "cuisine", "sport", "brand", "clothes")
"""Keys whose values are keywords, in addition to the name."""

_FLAGS = ("takeaway", "delivery", "organic", "drive_through", "second_hand", "outdoor_seating")
"""Keys that are keywords themselves if their value is in `_YES`; so are diets (`diet:vegan`)."""

_YES = frozenset({"yes", "only"})


class PlaceText(NamedTuple):
    """The description of a place from its tags.

    Parameters
    ----------
    name
        Its name; may be empty.
    category
        Its category in OpenStreetMap's terms: restaurant, bakery, museum.
    keywords
        Normalised, distinct, in alphabetical order; at least one.
    tag_count
        The number of tags: a measure of how well known it is.
    """

    name: str
    category: str
    keywords: tuple[str, ...]
    tag_count: int


def place_text(tags: Mapping[str, str]) -> PlaceText | None:
    """Return the description of a place from tags; None if they describe none.

    Parameters
    ----------
    tags
        All tags of a node or closed way.
    """
    category = next((tags[key] for key in KIND_KEYS if tags.get(key, "no") != "no"), None)
    if category is None or category in NEVER:
        return None
    name = tags.get("name", "").strip()
    if category in FURNITURE and not name:
        return None
    found = keywords(tags)
    return PlaceText(name, category, found, len(tags)) if found else None


def keywords(tags: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keywords of a place; if too many, those of its kind precede those of its name."""
    found: dict[str, None] = {}
    for key in _VALUE_KEYS:
        found.update(dict.fromkeys(words(tags.get(key, ""))))
    for key, value in tags.items():
        flag = key.removeprefix("diet:")
        if value in _YES and (flag != key or key in _FLAGS):
            found.update(dict.fromkeys(words(flag)))
    found.update(dict.fromkeys(words(tags.get("name", ""))))
    return tuple(sorted(list(found)[:KEYWORDS_MAX]))


def words(text: str) -> Iterator[str]:
    """Split a text into keywords: runs of letters, digits and apostrophes, normalised.

    Single letters of alphabets, numbers and stop words are left out.
    """
    normal = normalised_keyword(text).replace("\u2019", "'")
    spaced = "".join(one if _is_of_word(one) else " " for one in normal)
    for part in spaced.split():
        head, _, tail = part.strip("'").partition("'")
        word = normalised_keyword(tail if head in ELISIONS and tail else part.strip("'"))
        if _is_telling(word) and word not in STOP_WORDS:
            yield word


def _is_of_word(character: str) -> bool:
    """Whether a character is a letter, a combining mark, a number, or an apostrophe."""
    return character == "'" or unicodedata.category(character)[0] in "LMN"


def _is_telling(word: str) -> bool:
    if not 0 < len(word) <= KEYWORD_LENGTH_MAX or word.isnumeric():
        return False
    # A single character can be a word in Chinese or Japanese; a single letter cannot.
    return len(word) > 1 or unicodedata.category(word) == "Lo"
