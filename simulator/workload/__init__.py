"""The workload: published objects and subscriptions, also as feeds."""
