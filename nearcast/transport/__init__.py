"""Channel, streams and retries: the only part of the SDK that opens a connection."""
