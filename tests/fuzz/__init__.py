"""Fuzzing: every decoder, the expression parser, the session table, settings, feeds and idf tables."""
