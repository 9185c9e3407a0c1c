"""Addresses of feeds in Redis.

    redis://127.0.0.1:6379/0/messages?streams=4

names a server, one of its databases, a feed, and the number of streams of the feed: `messages:0` to
`messages:3`. An address has no password, so that it may be logged and shown. The environment variable
`NEARCAST_REDIS_PASSWORD` has the password, and `NEARCAST_REDIS_USER` the name of a user.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

_SCHEMES = ("redis", "rediss")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HARMLESS = re.compile(r"[a-z]+://[A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]*)*")
"""Addresses without user, port and options: a wrong address that has one of these may have a password."""

STREAMS_MAX = 1024
_FORM = "redis://host:port/database/feed?streams=1"


class AddressError(ValueError):
    """An address that cannot be used; the message names it and its form."""


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """A feed in Redis.

    Parameters
    ----------
    server
        URL of the database.
    feed
        Name of the feed.
    streams
        Number of streams of the feed.
    """

    server: str
    feed: str
    streams: int = 1

    @classmethod
    def parse(cls, text: str) -> RedisAddress:
        """Parse an address.

        Raises
        ------
        AddressError
            If the text does not have the form of an address.
        """
        try:
            parts = urlsplit(text)
            _ = parts.port  # raises if it is not a port
        except ValueError:
            raise AddressError(f"address{_shown(text)} must be like {_FORM}") from None
        path = parts.path.strip("/").split("/")
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        streams = options.pop("streams", "1")
        if parts.username or parts.password:
            raise AddressError(
                "an address must not have a user or a password: set NEARCAST_REDIS_USER and "
                "NEARCAST_REDIS_PASSWORD"
            )
        is_right = (
            parts.scheme in _SCHEMES
            and bool(parts.hostname)
            and len(path) == len(("database", "feed"))
            and path[0].isdecimal()
            and _NAME.fullmatch(path[1]) is not None
            and not options
            and not parts.fragment
        )
        if not is_right:
            raise AddressError(f"address{_shown(text)} must be like {_FORM}")
        if not streams.isdecimal() or not 1 <= int(streams) <= STREAMS_MAX:
            raise AddressError(f"streams is {streams}, must be 1 to {STREAMS_MAX}")
        return cls(f"{parts.scheme}://{parts.netloc}/{path[0]}", path[1], int(streams))

    def __str__(self) -> str:
        return f"{self.server}/{self.feed}?streams={self.streams}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams in Redis."""
        return tuple(f"{self.feed}:{number}" for number in range(self.streams))


def _shown(text: str) -> str:
    """Return an address for a message, unless it may contain a password."""
    return f" is {text}," if _HARMLESS.fullmatch(text) else ""


_VARIABLES = {"username": "NEARCAST_REDIS_USER", "password": "NEARCAST_REDIS_PASSWORD"}

BEGIN = "0-0"
"""Id before the first entry."""


class Span(NamedTuple):
    """Entries of a stream: after one id, up to and including another."""

    server: str
    stream: str
    after: str
    upto: str

    def __str__(self) -> str:
        return f"{self.server}/{self.stream}#{self.after}..{self.upto}"

    @classmethod
    def parse(cls, text: str) -> Span:
        """Parse the text that `str` returns."""
        where, _, ids = text.partition("#")
        server, _, stream = where.rpartition("/")
        after, _, upto = ids.partition("..")
        return cls(server, stream, after, upto)


def is_redis(text: str) -> bool:
    """Return whether a text is meant as an address in Redis, and not as a folder."""
    return text.partition("://")[0] in _SCHEMES and "://" in text


class Credentials:
    """Credentials for Redis. Their `repr` hides them, and Spark sends them to tasks with the reader.

    Parameters
    ----------
    values
        Values by the parameter names of Redis' client.
    """

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return "Credentials()"

    @classmethod
    def of_environment(cls) -> Credentials:
        """Return the credentials of this process's environment, if there are any."""
        return cls({name: value for name, key in _VARIABLES.items() if (value := os.environ.get(key))})
