"""Top-k subscriptions that stand: kept right by the server alone, as Skype does it."""
