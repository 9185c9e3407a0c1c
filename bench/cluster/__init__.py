"""A cluster of nodes over three servers of a log, on this machine."""
