"""The distributed system: subscriptions that stand, over a stream of messages, on Spark."""
