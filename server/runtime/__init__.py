"""What drives the server: event loop, command queue, batches, time."""
