"""How often the devices of ranges that move speak."""
