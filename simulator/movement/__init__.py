"""How devices move: where they go, by which way, where they are at each tick."""
