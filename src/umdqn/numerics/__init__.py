"""Numerics that know nothing of learning: ReLU sums, quadrature, sorting, monotone functions."""

from umdqn.numerics.inversion import invert_monotone
from umdqn.numerics.piecewise import relu_sum
from umdqn.numerics.quadrature import clenshaw_curtis, cumulative_trapezoid, kept, running_sum
from umdqn.numerics.sorting import sort_data
from umdqn.numerics.table import MonotoneTable, unit_nodes

__all__ = [
    "MonotoneTable",
    "clenshaw_curtis",
    "cumulative_trapezoid",
    "invert_monotone",
    "kept",
    "relu_sum",
    "running_sum",
    "sort_data",
    "unit_nodes",
]
