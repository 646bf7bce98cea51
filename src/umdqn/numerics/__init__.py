"""Numerics without learning: sums of ReLUs, quadrature, sorting, monotone functions."""
