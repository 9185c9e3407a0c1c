"""Stationary top-k subscriptions: kept right by the server alone, as Skype does it."""
