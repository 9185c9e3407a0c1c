"""One partition: subscriptions, the window of messages, the engine; and replicas of subscriptions."""
