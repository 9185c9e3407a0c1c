"""Porters: processes that hold connections, so that the server's own has time for the engine.

All porters listen on one port, among which the system divides connections (SO_REUSEPORT). A porter knows
nothing of what is said: it carries bytes between gRPC and a local socket to the server's process, in
frames, many at a time. What the server says to its streams is the same with porters and without.
"""
