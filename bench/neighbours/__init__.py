"""Measure the effect of one caller, acting within its rights, on its neighbours."""
