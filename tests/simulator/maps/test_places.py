import pytest

from safe_region.scoring.keywords import normalised_keyword
from server.limits import Limits
from simulator.maps.places import KEYWORD_LENGTH_MAX, KEYWORDS_MAX, keywords, place_text, words
from simulator.workload.objects import OFFER_WORDS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Da Mario", ["mario"]),
        ("fast_food", ["fast", "food"]),
        ("pizza;pasta; kebab", ["pizza", "pasta", "kebab"]),
        ("Café  Zürich", ["café", "zürich"]),
        ("McDonald\u2019s", ["mcdonald's"]),
        ("Place d'Armes", ["place", "armes"]),
        ("Dell'Arte & Co.", ["arte"]),
        ("7 Eleven 24", ["eleven"]),
        ("Bar A", ["bar"]),
        ("\uff33\uff35\uff33\uff28\uff29", ["sushi"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("東京 茶", ["東京", "茶"]),
        ("ร้านอาหาร", ["ร้านอาหาร"]),
        ("The House of the Rising Sun", ["house", "rising", "sun"]),
        ("sale", []),
        ("--- '' ...", []),
        ("", []),
    ],
)
def test_words_of_a_text(text, expected):
    assert list(words(text)) == expected


@pytest.mark.parametrize(
    ("tags", "category", "expected"),
    [
        (
            {"amenity": "restaurant", "name": "Da Mario", "cuisine": "pizza;sea_food"},
            "restaurant",
            ("food", "mario", "pizza", "restaurant", "sea"),
        ),
        ({"amenity": "pharmacy"}, "pharmacy", ("pharmacy",)),
        ({"shop": "yes", "name": "Corner"}, "yes", ("corner",)),
        (
            {"amenity": "cafe", "diet:vegan": "yes", "diet:halal": "no", "takeaway": "only"},
            "cafe",
            ("cafe", "takeaway", "vegan"),
        ),
        ({"tourism": "hotel", "amenity": "bar"}, "bar", ("bar", "hotel")),
        ({"leisure": "park", "name": "Upper Gardens"}, "park", ("gardens", "park", "upper")),
        ({"leisure": "park"}, None, ()),
        ({"amenity": "bench", "name": "Bench of Honour"}, None, ()),
        ({"amenity": "parking"}, None, ()),
        ({"shop": "no"}, None, ()),
        ({"shop": "no", "amenity": "bank"}, "bank", ("bank",)),
        ({"shop": "yes"}, None, ()),
        ({"name": "Somewhere"}, None, ()),
        ({"highway": "bus_stop", "name": "Somewhere"}, None, ()),
        ({}, None, ()),
    ],
)
def test_tags_of_a_place(tags, category, expected):
    found = place_text(tags)
    assert (found and found.category) == category
    assert (found.keywords if found else ()) == expected
    if found:
        assert found.name == tags.get("name", "")
        assert found.tag_count == len(tags)


def test_too_many_keywords_keep_those_of_the_kind():
    name = " ".join(f"word{i:03d}" for i in range(200))
    found = keywords({"shop": "zebra_shop", "name": name})
    assert len(found) == KEYWORDS_MAX
    assert {"zebra", "shop", "word000"} <= set(found)
    assert "word199" not in found


def test_keywords_are_valid_for_the_server():
    assert Limits().object_keywords_max == KEYWORDS_MAX + 1
    assert Limits().keyword_length_max == KEYWORD_LENGTH_MAX
    long = "x" * (KEYWORD_LENGTH_MAX + 1)
    found = keywords({"shop": "A;B\u00adC;\u0130STANBUL;" + long, "name": "\u1e9e\u0149 \ufb03 " + long})
    assert found
    for word in found:
        assert word == normalised_keyword(word)
        assert word.isprintable()
        assert 0 < len(word) <= KEYWORD_LENGTH_MAX


def test_no_keyword_is_the_word_of_an_offer():
    assert keywords({"shop": "bakery", "name": " ".join(OFFER_WORDS)}) == ("bakery",)
