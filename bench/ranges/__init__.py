"""`bench ranges`: how often the devices of ranges that move speak."""
