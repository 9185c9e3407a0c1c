"""Identity: tokens, keys and certificates, read from files that may change while the server runs."""
