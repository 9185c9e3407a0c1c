"""The runtime of the server: event loop, command queue, batches, time."""
