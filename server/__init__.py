"""The server: engine (pure), sessions (pure), store (durable), transport (grpc), main (wiring)."""
