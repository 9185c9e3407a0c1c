"""Identity: callers, their rights and quotas; tokens, keys and certificates, read from files that may change."""
