"""How long a server takes to come back with what its store holds, and how much memory that takes."""
