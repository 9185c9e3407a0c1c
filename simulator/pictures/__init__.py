"""Pictures of maps, devices and regions."""
