"""Measure the report rates of devices with moving ranges."""
