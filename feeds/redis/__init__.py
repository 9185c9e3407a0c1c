"""Feeds in Redis Streams: durable logs between processes, with rows in Arrow's format or as JSON."""

from feeds.redis.address import AddressError, RedisAddress

__all__ = ["AddressError", "RedisAddress"]
