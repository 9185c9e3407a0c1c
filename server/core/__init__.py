"""The state of the server: keywords as numbers, matching, and the routing of changes to devices."""
