"""The rules of places: which tags make a place, and which keywords it has.

Pure functions over the tags of one node or closed way. A place is something that could publish: a
shop, an office, a sight, a place to eat. What only furnishes a street is none, and neither is an
unnamed thing of a kind that everybody walks past.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from safe_region.keywords import normalised_keyword
from simulator.workload import OFFER_WORDS

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
"""What makes a place; the first that is there gives its category."""

_VALUE_KEYS = (*KIND_KEYS, "cuisine", "sport", "brand", "clothes")
"""Keys whose values are keywords, beside the name."""

_FLAGS = ("takeaway", "delivery", "organic", "drive_through", "second_hand", "outdoor_seating")
"""Keys that are keywords themselves where their value says so; so are the diets (`diet:vegan`)."""

_SAYS_SO = frozenset({"yes", "only"})

_FURNITURE = frozenset(
    "bench bicycle_parking bbq clock drinking_water dog_park fire_hydrant firepit fountain garden "
    "grave_yard grit_bin hunting_stand letter_box motorcycle_parking outdoor_seating parking "
    "parking_entrance parking_space picnic_table pitch playground post_box recycling shelter "
    "shower slipway street_lamp swimming_pool table telephone toilets track trolley_bay vacant "
    "vending_machine ticket_validator waste_basket waste_disposal waste_transfer_station water_point "
    "watering_place wayside_cross wayside_shrine boundary_stone information artwork viewpoint "
    "charging_station bicycle_repair_station loading_dock lounger compressed_air park common nature_reserve".split()
)
"""No places unless they have a name; some of them not even then."""

_NEVER = frozenset(
    "bench parking parking_entrance parking_space waste_basket street_lamp vacant no "
    "motorcycle_parking bicycle_parking".split()
)

_ELISIONS = frozenset("all c d dall dell j l m n nell qu s sull t".split())
"""What stands before an apostrophe and is no part of the word: d'armes, l'isola."""

_STOP_WORDS = frozenset(
    # Articles, prepositions and forms of companies, in the languages of many maps.
    "a al am an and at au aux by co company da das de dei del della delle der des di die do dos du e "
    "ed el en et for from gmbh i il im in inc is ja la las le les limited lo los ltd na no nr of on og "
    "och oy po sa san sant santa sao são srl st ta tal the to u un una und und van von y yes z zum zur "
    # Values that say nothing.
    "and fixme none other private public unknown user defined".split()
).union(OFFER_WORDS)
"""Words that tell places apart from nothing; offers' words would make a replaced object the same."""


class PlaceText(NamedTuple):
    """What the tags of a place say.

    Parameters
    ----------
    name
        Its name; may be empty.
    category
        What it is, as OpenStreetMap calls it: restaurant, bakery, museum.
    keywords
        Normalised, different, in alphabetical order; at least one.
    tag_count
        How much is known about it: a measure of how well known it is.
    """

    name: str
    category: str
    keywords: tuple[str, ...]
    tag_count: int


def place_text(tags: Mapping[str, str]) -> PlaceText | None:
    """Return what the tags say about a place, None if they describe none.

    Parameters
    ----------
    tags
        All tags of a node or closed way.
    """
    category = next((tags[key] for key in KIND_KEYS if tags.get(key, "no") != "no"), None)
    if category is None or category in _NEVER:
        return None
    name = tags.get("name", "").strip()
    if category in _FURNITURE and not name:
        return None
    found = keywords(tags)
    return PlaceText(name, category, found, len(tags)) if found else None


def keywords(tags: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keywords of a place, those of its kind before those of its name if there are too many."""
    found: dict[str, None] = {}
    for key in _VALUE_KEYS:
        found.update(dict.fromkeys(words(tags.get(key, ""))))
    for key, value in tags.items():
        flag = key.removeprefix("diet:")
        if value in _SAYS_SO and (flag != key or key in _FLAGS):
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
        word = normalised_keyword(tail if head in _ELISIONS and tail else part.strip("'"))
        if _is_telling(word) and word not in _STOP_WORDS:
            yield word


def _is_of_word(character: str) -> bool:
    """Whether a character is a letter, a mark on one, a number, or an apostrophe."""
    return character == "'" or unicodedata.category(character)[0] in "LMN"


def _is_telling(word: str) -> bool:
    if not 0 < len(word) <= KEYWORD_LENGTH_MAX or word.isnumeric():
        return False
    # One sign can be a word in Chinese or Japanese, one letter cannot.
    return len(word) > 1 or unicodedata.category(word) == "Lo"
