"""Match top-k subscriptions: the k best objects of each, wherever its device is."""
