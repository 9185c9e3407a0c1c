"""The mapping between messages and the canonical types, in both directions, for SDK and server.

Functions to messages take valid values. Functions from messages return None for a message that has a
choice which is unknown here: another program of a newer version may have written it.
"""
