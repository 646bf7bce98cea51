"""Reads agents that umdqn exported; needs NumPy only, and can be copied anywhere."""

from .model import Model

__all__ = ["Model"]
