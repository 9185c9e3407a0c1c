"""Feeds in Redis Streams: a durable log between processes, of rows in Arrow's format or as JSON."""

from feeds.redis.address import AddressError, RedisAddress

__all__ = ["AddressError", "RedisAddress"]
