"""Event logs shared by simulator, stream job and server: schemas, readers, writers; sessions of Spark."""
