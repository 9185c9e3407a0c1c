"""What Spark's tasks do, and what lies in memory between two of them."""
