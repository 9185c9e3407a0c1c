"""The log that the nodes of a cluster share: its entries, their format, and the log in NATS JetStream.

Only this package imports `nats`. It knows neither the engine nor the store: `server/replication` applies
the entries.
"""
