"""Whether a simulation is what it says: a Spark job over its tables."""
