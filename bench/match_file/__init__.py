"""Match a file of boolean subscriptions with a file of objects."""
