"""Fuzzing: decoders, the walk over bytes, the expression parser, the session table, settings and feeds;
the fair queue and budgets, by sequences of operations."""
