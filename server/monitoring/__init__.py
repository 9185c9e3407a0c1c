"""What operators see of a running server: readings, metrics, and what they are called."""
