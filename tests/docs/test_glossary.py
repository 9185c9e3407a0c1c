"""Each entry of the glossary is a term in a line of its own, and its definition; terms are in order."""

from __future__ import annotations

import re
from pathlib import Path

GLOSSARY = (Path(__file__).resolve().parents[2] / "docs" / "glossary.md").read_text()


def test_every_entry_has_the_same_form():
    title, *entries = GLOSSARY.strip().split("\n\n")
    assert title == "# Glossary"
    for entry in entries:
        assert re.fullmatch(r"[A-Z][^:\n]*\n: [^:\n].*(\n[^:].*)*", entry), entry
    terms = [entry.splitlines()[0].lower() for entry in entries]
    assert terms == sorted(terms)
