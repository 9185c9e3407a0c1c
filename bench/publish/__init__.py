"""How many objects a second a server makes durable and tells devices about."""
