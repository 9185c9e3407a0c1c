"""What can be asked of the server: validated, planned, applied."""
