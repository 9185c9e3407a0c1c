"""`nearcast dev`: a server, a gateway and a small town, in memory."""
