"""Fuzzing: decoders, the walk over bytes, the expression parser, the session table, settings and feeds;
frames and requests of a gateway; the fair queue and budgets, by sequences of operations."""
