"""What owners send to replicas: written behind a batch, read in the next."""
