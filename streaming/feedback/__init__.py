"""Feedback from owners to replicas: written after a batch, read in the next."""
