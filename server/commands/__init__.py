"""Commands to the server: validated, planned, applied."""
