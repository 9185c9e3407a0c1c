"""A run as one compact file for the live map."""
