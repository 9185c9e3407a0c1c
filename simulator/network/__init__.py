"""The streets as a graph: who may go where, how fast, and by which way."""
