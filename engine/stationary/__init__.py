"""Match stationary top-k subscriptions, whose results the server alone keeps correct, as Skype does."""
