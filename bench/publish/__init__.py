"""Measure the objects a second that a server makes durable and notifies devices of."""
