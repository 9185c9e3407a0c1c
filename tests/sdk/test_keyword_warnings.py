"""A keyword that is most likely meant as an expression is served, and the app's developer is warned."""

from __future__ import annotations

import warnings

import pytest

from nearcast import Boolean, Circle, Clause, KeywordWarning, TopK


@pytest.mark.parametrize(
    "spec",
    [
        TopK({"tea", "parcel AND cold"}, k=3),
        Boolean({"parcel AND cold"}, Circle(500.0), moving=True),
        Boolean([Clause({"tea"}, excluded={"parcel AND cold"})], Circle(500.0), moving=True),
    ],
)
async def test_a_keyword_that_is_likely_an_expression(client, spec):
    device = await client.attach("d", lon=14.5, lat=35.5)
    for call in (device.subscribe(spec), device.search(spec), client.search(spec, lon=14.5, lat=35.5)):
        with pytest.warns(
            KeywordWarning, match="^'parcel AND cold' is one keyword, with its blanks;"
        ) as caught:
            await call
        assert [one.filename for one in caught] == [__file__]


async def test_keywords_with_blanks_and_texts_get_no_warning(client):
    device = await client.attach("d", lon=14.5, lat=35.5)
    about = Circle(500.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await device.subscribe(TopK({"bed and breakfast", "ANDORRA", "sandwich"}, k=3))
        await device.subscribe(Boolean('parcel AND NOT "rock AND roll"', about, moving=True))
