"""The simulator: maps to roads, trajectories and workloads with Spark; replay through the SDK."""
