"""The generated pages of docs/reference are those of the declarations (`make reference`)."""

from __future__ import annotations

import pytest

from docs.generators.__main__ import FOLDER, PAGES
from docs.generators.protocol import files


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_generated(name):
    assert (FOLDER / name).read_text() == PAGES[name]()


def test_every_message_field_and_value_is_on_the_page():
    page = PAGES["protocol.md"]()
    for file in files():
        for message in file.message_type:
            assert f"\n### {message.name}\n" in page
            for field in message.field:
                assert f"`{field.name}` = {field.number} " in page
        for value in (value for enum in file.enum_type for value in enum.value):
            assert f"`{value.name}` = {value.number} " in page
        for method in (method for service in file.service for method in service.method):
            assert f"\n**{method.name}**: " in page
