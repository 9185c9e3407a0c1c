"""The distributed system: stationary subscriptions, over a stream of messages, on Spark."""
