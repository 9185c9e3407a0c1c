"""Words of maps: values that do not make a place, and words that are not keywords."""

from __future__ import annotations

from simulator.workload.objects import OFFER_WORDS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FURNITURE = _words(
    "artwork bbq bicycle_repair_station boundary_stone charging_station clock common compressed_air "
    "dog_park drinking_water fire_hydrant firepit fountain garden grave_yard grit_bin hunting_stand "
    "information letter_box loading_dock lounger nature_reserve outdoor_seating park picnic_table "
    "pitch playground post_box recycling shelter shower slipway swimming_pool table telephone "
    "ticket_validator toilets track trolley_bay vending_machine viewpoint waste_disposal "
    "waste_transfer_station water_point watering_place wayside_cross wayside_shrine"
)
"""Values that make a place only together with a name."""

NEVER = _words(
    "bench bicycle_parking motorcycle_parking no parking parking_entrance parking_space street_lamp "
    "vacant waste_basket"
)
"""Values that never make a place."""

ELISIONS = _words("all c d dall dell j l m n nell qu s sull t")
"""Words before an apostrophe that are not a part of the word after it: d'armes, l'isola."""

STOP_WORDS = (
    # Articles, prepositions and forms of companies, in the languages of many maps.
    _words(
        "a al am an and at au aux by co company da das de dei del della delle der des di die do dos "
        "du e ed el en et for from gmbh i il im in inc is ja la las le les limited lo los ltd na nr of "
        "on og och oy po sa san sant santa sao são srl st ta tal the to u un una und van von y z zum zur"
    )
    # Values without information.
    | _words("fixme no none other private public unknown user defined yes")
    # Offers add these words: with them a replaced object could be the same as before.
    | frozenset(OFFER_WORDS)
)
"""Words that are not keywords: they do not distinguish places."""
