"""Words of the generated city: categories of places, their keywords and their names.

Within a category words are ordered by popularity; many belong to several categories, so that the
keywords of places overlap as they do in a real town.
"""

from __future__ import annotations

from typing import NamedTuple


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


class Category(NamedTuple):
    """A kind of place.

    Parameters
    ----------
    name
        The value of the column `category`.
    weight
        Fraction of the places, relative to the other categories.
    words
        Keywords, most popular first.
    nouns
        Nouns for the names of such places.
    """

    name: str
    weight: float
    words: tuple[str, ...]
    nouns: tuple[str, ...]


CATEGORIES = (
    Category(
        "food",
        0.30,
        _words(
            "lunch vegan takeaway coffee dinner pizza sushi delivery vegetarian burger tea kebab "
            "ramen salad noodles family terrace pasta curry tapas seafood glutenfree halal soup "
            "tacos barbecue dumplings grill brunch dessert"
        ),
        ("Kitchen", "Table", "Diner", "Grill", "Bistro", "Canteen", "Trattoria", "Noodle Bar"),
    ),
    Category(
        "drink",
        0.18,
        _words(
            "coffee tea breakfast beer cake wine cocktails terrace vegan espresso takeaway juice "
            "wifi brunch livemusic smoothie matcha bubbletea rooftop craftbeer pub latenight"
        ),
        ("Cafe", "Bar", "Tea House", "Roastery", "Tavern", "Tap Room", "Espresso"),
    ),
    Category(
        "bakery",
        0.08,
        _words(
            "bread coffee cake breakfast vegan tea croissant takeaway pastry sandwich chocolate "
            "icecream glutenfree organic sourdough"
        ),
        ("Bakery", "Patisserie", "Oven", "Gelato", "Bread Co."),
    ),
    Category(
        "shops",
        0.22,
        _words(
            "fashion shoes organic gifts books electronics secondhand phones toys sports vegan "
            "flowers jewellery furniture groceries cosmetics vintage outdoor tea wine bicycles "
            "records stationery pets"
        ),
        ("Store", "Boutique", "Market", "Outlet", "Corner", "Emporium", "Supply"),
    ),
    Category(
        "services",
        0.12,
        _words(
            "haircut repair beauty pharmacy laundry phones massage nails optician keys printing "
            "bank parcel bicycles tattoo dentist rental tailor"
        ),
        ("Studio", "Service", "Salon", "Workshop", "Point", "Works"),
    ),
    Category(
        "culture",
        0.06,
        _words(
            "exhibition livemusic cinema books theatre art family museum concert comedy dance "
            "gallery photography jazz workshop coffee"
        ),
        ("Gallery", "Hall", "Theatre", "Cinema", "House", "Museum"),
    ),
    Category(
        "leisure",
        0.04,
        _words(
            "fitness yoga family sports swimming climbing dance gaming bowling kids sauna pool "
            "football tennis wellness juice"
        ),
        ("Club", "Gym", "Arena", "Centre", "Yard"),
    ),
)

NAMES = _words(
    "Alba Amber Anchor Arco Aurora Basil Bell Bianca Brook Carob Cedar Citadel Citrus Clover "
    "Copper Coral Corner Dolphin Ember Fern Fig Garden Ginger Golden Grand Harbour Hazel Indigo "
    "Iris Ivory Jasmin Juniper Lantern Laurel Lemon Linden Luna Magnolia Maple Marina Meridian "
    "Mill Mirador Nova Oak Olive Orchard Paloma Pearl Pepper Pine Poppy Quay Quince Rosa Saffron "
    "Sage Salt Sand Sol Stella Stone Terra Thyme Tide Velvet Verde Vista Willow Zephyr"
)
"""First halves of names."""
