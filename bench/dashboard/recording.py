"""Record the samples of a metrics port at intervals."""

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
    """Samples of a metrics port at one time."""

    at_s: float
    samples: Mapping[str, Series]
    """Series by name."""

    def select(self, name: str, matchers: str) -> dict[Labels, float]:
        """Return the series of a name whose labels match the matchers of PromQL."""
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
        If no server responds.
    """
    with urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - a local address
        text = answer.read().decode()
    return parsed(text, time.monotonic())


def parsed(text: str, at_s: float) -> Scrape:
    """Parse the text of a metrics port."""
    samples: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            samples.setdefault(one.name, {})[frozenset(one.labels.items())] = one.value
    return Scrape(at_s, samples)


@contextmanager
def recorded(url: str, every_s: float) -> Iterator[list[Scrape]]:
    """Scrape on a thread until the block ends; yield the growing list. The port may open later."""
    found: list[Scrape] = []
    ended = threading.Event()

    def record() -> None:
        while not ended.is_set():
            with suppress(OSError):  # the server has not started yet, or has stopped
                found.append(scraped(url))
            ended.wait(every_s)

    thread = threading.Thread(target=record, name="recording")
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()
