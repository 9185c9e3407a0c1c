"""Where a feed in Redis is.

    redis://127.0.0.1:6379/0/messages?streams=4

names a server, one of its databases, a feed, and into how many streams the feed is divided:
`messages:0` to `messages:3`. A password is no part of it, so that addresses may be noted and shown:
`NEARCAST_REDIS_PASSWORD` in the environment has it, and `NEARCAST_REDIS_USER` a user's name.
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
"""No user, no port, no options: what is wrong with an address that has them may be a password."""

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
        Into how many streams it is divided.
    """

    server: str
    feed: str
    streams: int = 1

    @classmethod
    def parse(cls, text: str) -> RedisAddress:
        """Read an address.

        Raises
        ------
        AddressError
            If it has not the form of one.
        """
        try:
            parts = urlsplit(text)
            _ = parts.port  # raises if it is none
        except ValueError:
            raise AddressError(f"address{_shown(text)} must be like {_FORM}") from None
        path = parts.path.strip("/").split("/")
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        streams = options.pop("streams", "1")
        if parts.username or parts.password:
            raise AddressError(
                "an address has no user and no password: set NEARCAST_REDIS_USER and "
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
    """Return an address for a message, unless there may be a password in it."""
    return f" is {text}," if _HARMLESS.fullmatch(text) else ""


_VARIABLES = {"username": "NEARCAST_REDIS_USER", "password": "NEARCAST_REDIS_PASSWORD"}

BEGIN = "0-0"
"""Before the first id."""


class Span(NamedTuple):
    """Entries of a stream: behind one id, up to another."""

    server: str
    stream: str
    after: str
    upto: str

    def __str__(self) -> str:
        return f"{self.server}/{self.stream}#{self.after}..{self.upto}"

    @classmethod
    def parse(cls, text: str) -> Span:
        """Read what `str` has written."""
        where, _, ids = text.partition("#")
        server, _, stream = where.rpartition("/")
        after, _, upto = ids.partition("..")
        return cls(server, stream, after, upto)


def is_redis(text: str) -> bool:
    """Whether a text is meant as an address in Redis, and not as a folder."""
    return text.partition("://")[0] in _SCHEMES and "://" in text


class Credentials:
    """What Redis is to be shown. It says nothing of itself, and travels to tasks with what they run.

    Parameters
    ----------
    values
        By the names of Redis' client.
    """

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return "Credentials()"

    @classmethod
    def of_environment(cls) -> Credentials:
        """Return those of this process's environment, if there are any."""
        return cls({name: value for name, key in _VARIABLES.items() if (value := os.environ.get(key))})
