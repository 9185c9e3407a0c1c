"""Questions of a newcomer: links lead from the site's front page to the answer, in two clicks at most."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.test_readme import anchors

DOCS = Path(__file__).resolve().parents[2] / "docs"
FRONT = DOCS / "index.md"
CLICKS = 2


class Question(NamedTuple):
    asked: str
    page: str
    heading: str
    answer: str


QUESTIONS = [
    Question("Which is the delivery rule?", "protocol.md", "the-delivery-rule", "applied once"),
    Question("How do I add an index?", "how-to/add-an-index.md", "as-a-plug-in", "entry-points"),
    Question(
        "What does reach mean?", "safe-regions.md", "anchor-buffer-reach", "the *reach*: a lower bound"
    ),
    Question("How do I run behind a proxy?", "how-to/proxy.md", "requirements", "HTTP/2"),
    Question("How do I simulate Lisbon?", "how-to/simulate-a-town.md", "3-simulate", "nearcast simulate"),
    Question(
        "Why did my device not get this?",
        "operations.md",
        "find-out-why-a-device-has-an-object-or-not",
        "nearcast inspect",
    ),
    Question("How exact is it?", "questions.md", "how-exact-are-the-results", "order included"),
    Question(
        "How many devices on one machine?",
        "questions.md",
        "how-many-devices-does-a-server-carry",
        "10,000 devices",
    ),
    Question("Which personal data is stored?", "personal-data.md", "data-of-a-device", "position"),
    Question("Which Python, which platforms?", "releases.md", "supported-versions", "Linux"),
    Question(
        "Is there an SDK for phones?", "questions.md", "is-there-an-sdk-for-android-ios-or-browsers", "No"
    ),
    Question(
        "What if a phone has no network for an hour?",
        "questions.md",
        "what-happens-when-a-phone-has-no-network-or-suspends-the-app-for-an-hour",
        "OFFLINE",
    ),
    Question(
        "Can two companies share a server?",
        "questions.md",
        "can-two-companies-share-one-server",
        "tenants",
    ),
    Question(
        "How do I get the best within a range?", "sdk.md", "the-best-within-a-range", "nearest first"
    ),
    Question(
        "Can two servers share the load?",
        "questions.md",
        "can-two-servers-share-the-load-or-one-replace-the-other",
        "cluster.md",
    ),
    Question("How do I back up?", "operations.md", "back-up-and-restore", "nearcast store backup"),
]


@cache
def links(page: Path) -> frozenset[Path]:
    """Return the pages to which a page leads, by its text or by its list of contents."""
    text = page.read_text()
    targets = re.findall(r"\]\(([^)#]+\.md)(?:#[^)]*)?\)", text)
    for listed in re.findall(r"^```{toctree}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        targets += [f"{line}.md" for line in listed.splitlines() if line and not line.startswith(":")]
    return frozenset((page.parent / target).resolve() for target in targets)


def reached(clicks: int) -> set[Path]:
    """Return the pages that so many clicks reach from the front page."""
    pages = {FRONT}
    for _ in range(clicks):
        pages |= {target for page in pages for target in links(page) if target.exists()}
    return pages


def section(page: Path, heading: str) -> str:
    """Return the text below a heading, up to the next one of its level or above."""
    lines = page.read_text().splitlines()
    (start,) = [
        number
        for number, line in enumerate(lines)
        if re.match(r"#+ ", line)
        and re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") == heading
    ]
    level = len(lines[start].split()[0])
    ends = [
        number
        for number, line in enumerate(lines)
        if number > start and re.match(rf"#{{1,{level}}} ", line)
    ]
    return "\n".join(lines[start : min(ends, default=len(lines))])


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.asked)
def test_two_clicks_lead_to_the_answer(question):
    page = (DOCS / question.page).resolve()
    assert page in reached(CLICKS)
    assert question.heading in anchors(page)
    assert question.answer in section(page, question.heading)


def test_every_page_of_the_documentation_is_in_two_clicks():
    records = {page for page in (DOCS / "decisions").glob("*.md") if page.name != "index.md"}
    missing = set(DOCS.rglob("*.md")) - reached(CLICKS) - records
    assert not {page.relative_to(DOCS).as_posix() for page in missing}
