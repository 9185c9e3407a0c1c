"""Top-k subscriptions: the k best of each, wherever its device is."""
