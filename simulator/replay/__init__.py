"""A simulation drives a server through the SDK, and is audited."""
