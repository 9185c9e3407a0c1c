"""Keywords are compared in Unicode NFKC, case folded and trimmed."""

from __future__ import annotations

_KEYWORDS = (
    "coffee",
    "  Coffee\t",
    "LIVE MUSIC",
    "Straße",
    "STRASSE",
    "ẞ",
    "ΣΊΣΥΦΟΣ",
    "ς",
    "İstanbul",
    "ıI",
    "ﬁne ﬂow",
    "ﬀ",
    "Ⅷ ℌ ①",
    "ｆｕｌｌ　ｗｉｄｔｈ",
    "\u00a0no break\u00a0",
    "\u2003wide\u3000",
    "\ufeffmark\ufeff",
    "\x1cseparator\x1f",
    "\x85next line\x85",
    "e\u0301 é",
    "\u0345\u0390",
    "ᏣᎳᎩ ꮳꮃꭹ",
    "ŉ ǰ ΐ",
    "ᾳ ᾼ ᾲ",
    "Å Å",
    "한글",
    "😀 𝓒𝓪𝓯é",
    "",
    "   ",
)


def cases():
    steps = [{"op": "normalise", "keyword": one} for one in _KEYWORDS]
    yield {"name": "keywords", "given": {}, "steps": steps}
