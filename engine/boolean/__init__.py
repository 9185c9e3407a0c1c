"""Match boolean subscriptions: all matching objects within a range, which may move with the device."""
