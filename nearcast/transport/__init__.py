"""Channel, streams and retries. No other part of the SDK opens a connection."""
