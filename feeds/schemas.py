"""Schemas of the feeds: publications and subscriptions, as rows of two event logs.

Meaning of the feeds
--------------------
messages
    Objects that are published (`action` is `publish`), are retracted (`retract`) or have expired
    (`expire`, which a server's sink writes; readers know it already). The publisher chooses `object_id`,
    a new one for each object. To replace an object, it retracts the object and publishes another one.
    `time_ms` is the time of the action, in epoch milliseconds. The position is in degrees (WGS84), with
    keywords. `ttl_ms` is the lifetime of the object; null for as long as windows have capacity. A
    retraction needs only `action`, `object_id` and `time_ms`. `payload` is opaque bytes of the publisher.
subscriptions
    Subscriptions that start (`subscribe`) or end (`end`). The subscriber chooses `subscription_id`; a
    `subscribe` with the same id replaces the earlier subscription. Kind `top_k` has keywords, k, alpha,
    similarity (`jaccard`, `dice`, `cosine` or `tfidf`), and a position. Kind `boolean` has an expression,
    such as `coffee AND NOT "live music"`, and a fixed range: either `radius_m` about lon and lat, or
    `bounds`: west, south, east, north.

Order
-----
Rows of a feed may arrive in any order and more than once. A job processes the rows of a batch in the
order of `time_ms`, then of ids. It processes late rows when they arrive.
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

WITHOUT_PAYLOADS = {
    name: pa.schema([column for column in schema if column.name != "payload"])
    for name, schema in FEEDS.items()
}
"""The columns of the feeds that a job reads."""

KEYS = {"messages": "object_id", "subscriptions": "subscription_id"}
"""Columns by which a feed is divided: rows with the same value stay in order."""

SOURCE = "source"
"""Column that a job reads in addition to a feed's columns: the file or stream range that has the row."""
BATCH_MS = "batch_ms"
"""Another one, of messages: when the batch that reads the row was started, also if it is repeated."""
