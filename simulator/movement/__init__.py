"""Movement of devices: their destinations, their paths, their positions at each tick."""
