"""Trained agents in a form that runs without JAX."""
