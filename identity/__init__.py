"""Identity: callers, rights and quotas; tokens, keys and certificates in files that may change."""
