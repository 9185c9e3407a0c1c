"""The tasks of Spark, and the data that lies in memory between two of them."""
