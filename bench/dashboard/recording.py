"""A recording: what a metrics port has told, time after time."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Series = Mapping[Labels, float]

_MATCHER = re.compile(r'(\w+)\s*(=~|!=|=)\s*"([^"]*)"')
_TIMEOUT_S = 5.0


class Scrape(NamedTuple):
    """What was told once."""

    at_s: float
    samples: Mapping[str, Series]
    """By name."""

    def select(self, name: str, matchers: str) -> dict[Labels, float]:
        """Return the series of a name whose labels are as the matchers of PromQL say."""
        wanted = _MATCHER.findall(matchers)
        found = self.samples.get(name, {})
        return {labels: value for labels, value in found.items() if _do_match(dict(labels), wanted)}


def _do_match(labels: Mapping[str, str], wanted: list[tuple[str, str, str]]) -> bool:
    for name, operator, text in wanted:
        value = labels.get(name, "")
        if operator == "=~":
            holds = re.fullmatch(text, value) is not None
        else:
            holds = (value == text) == (operator == "=")
        if not holds:
            return False
    return True


def scraped(url: str) -> Scrape:
    """Scrape once.

    Raises
    ------
    OSError
        If nobody answers.
    """
    with urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - ours
        text = answer.read().decode()
    return parsed(text, time.monotonic())


def parsed(text: str, at_s: float) -> Scrape:
    """Read what was told."""
    samples: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            samples.setdefault(one.name, {})[frozenset(one.labels.items())] = one.value
    return Scrape(at_s, samples)


@contextmanager
def recorded(url: str, every_s: float) -> Iterator[list[Scrape]]:
    """Scrape until the block ends, on a thread; yield what was told so far. The port may come later."""
    found: list[Scrape] = []
    ended = threading.Event()

    def record() -> None:
        while not ended.is_set():
            with suppress(OSError):  # not there yet, or not any more
                found.append(scraped(url))
            ended.wait(every_s)

    thread = threading.Thread(target=record, name="recording")
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()
