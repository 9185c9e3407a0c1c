"""The replay: drives a server with a simulation through the SDK, and audits its results."""
