"""Match stationary top-k subscriptions: the server alone keeps their results correct, as Skype does."""
