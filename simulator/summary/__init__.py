"""A simulation in figures and plots."""
