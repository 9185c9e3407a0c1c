"""How the parts of a server are made from its settings: alone, or as a node of a cluster."""
