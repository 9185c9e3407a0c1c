"""Event logs that simulator, stream job and server share: schemas, readers, writers; Spark's session."""
