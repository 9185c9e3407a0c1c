"""The street graph: open roads and speeds of each class, and fastest paths."""
