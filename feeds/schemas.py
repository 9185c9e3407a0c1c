"""The feeds: what is published, and who wants to know, as rows of two event logs.

A feed's meaning
----------------
messages
    What is published (`action` is `publish`), is taken back (`retract`) and has come to the end of its
    lifetime (`expire`, which a server's sink says; readers know it already). `object_id` is the
    publisher's, and new for each object; who replaces an object retracts it and publishes another.
    `time_ms` is when that happened, in epoch milliseconds. A position in degrees (WGS84) and keywords;
    `ttl_ms` is how long the object lives, null for as long as windows have room. Only `action`,
    `object_id` and `time_ms` matter of what is taken back. `payload` is the publisher's own.
subscriptions
    Who subscribes (`subscribe`) and no longer does (`end`). `subscription_id` is the subscriber's; who
    subscribes again under the same one replaces what it had. Of kind `top_k`: keywords, k, alpha,
    similarity (`jaccard`, `dice`, `cosine` or `tfidf`), and where it stands. Of kind `boolean`: an
    expression, such as `coffee AND NOT "live music"`, and a range that is fixed in place, either
    `radius_m` about lon and lat or `bounds`: west, south, east, north.

Order
-----
Rows of a feed may come in any order and more than once. What happens in the same batch of a job happens
in the order of `time_ms`, then of ids. What is late is taken as it comes.
"""

from __future__ import annotations

import pyarrow as pa

PUBLISH, RETRACT, EXPIRE = "publish", "retract", "expire"
SUBSCRIBE, END = "subscribe", "end"
TOP_K, BOOLEAN = "top_k", "boolean"

MESSAGES = pa.schema(
    [
        ("action", pa.string()),
        ("object_id", pa.int64()),
        ("time_ms", pa.int64()),
        ("lon", pa.float64()),
        ("lat", pa.float64()),
        ("keywords", pa.list_(pa.string())),
        ("ttl_ms", pa.int64()),
        ("payload", pa.binary()),
    ]
)

SUBSCRIPTIONS = pa.schema(
    [
        ("action", pa.string()),
        ("subscription_id", pa.int64()),
        ("time_ms", pa.int64()),
        ("kind", pa.string()),
        ("keywords", pa.list_(pa.string())),
        ("k", pa.int32()),
        ("alpha", pa.float64()),
        ("similarity", pa.string()),
        ("lon", pa.float64()),
        ("lat", pa.float64()),
        ("expression", pa.string()),
        ("radius_m", pa.float64()),
        ("bounds", pa.list_(pa.float64())),
    ]
)

FEEDS = {"messages": MESSAGES, "subscriptions": SUBSCRIPTIONS}

KEYS = {"messages": "object_id", "subscriptions": "subscription_id"}
"""Rows of one of these stay in order, however a feed is divided."""

SOURCE = "source"
"""Column that a job reads beside those of a feed: the file or stretch of a stream that has the row."""
