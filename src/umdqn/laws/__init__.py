"""Laws of the random return, and the representations by which networks parameterise them."""

from umdqn.laws.atoms import (
    Atoms,
    Categorical,
    OrderedQuantileAtoms,
    QuantileAtoms,
    midpoints,
    project,
)
from umdqn.laws.bellman import Affine, Either, bellman
from umdqn.laws.closed import Dirac, GaussianMixture, Uniform, normal
from umdqn.laws.discrete import CategoricalPdf, Expectation, NonCrossingQuantiles, Quantiles
from umdqn.laws.flow import FlowLaw
from umdqn.laws.implicit import ImplicitQuantiles, ProposedQuantiles, fraction_gradient
from umdqn.laws.law import Law
from umdqn.laws.quantile import QuantileLaw
from umdqn.laws.representation import Head, Representation, View
from umdqn.laws.umnn import UmnnCdf, UmnnPdf, UmnnQf

REPRESENTATIONS: dict[str, type[Representation]] = {
    "umnn-pdf": UmnnPdf,
    "umnn-cdf": UmnnCdf,
    "umnn-qf": UmnnQf,
    "expectation": Expectation,
    "categorical": CategoricalPdf,
    "quantiles": Quantiles,
    "non-crossing-quantiles": NonCrossingQuantiles,
    "implicit-quantiles": ImplicitQuantiles,
    "proposed-quantiles": ProposedQuantiles,
}
"""Every representation by the name that users type."""

__all__ = [
    "REPRESENTATIONS",
    "Affine",
    "Atoms",
    "Categorical",
    "CategoricalPdf",
    "Dirac",
    "Either",
    "Expectation",
    "FlowLaw",
    "GaussianMixture",
    "Head",
    "ImplicitQuantiles",
    "Law",
    "NonCrossingQuantiles",
    "OrderedQuantileAtoms",
    "ProposedQuantiles",
    "QuantileAtoms",
    "QuantileLaw",
    "Quantiles",
    "Representation",
    "UmnnCdf",
    "UmnnPdf",
    "UmnnQf",
    "Uniform",
    "View",
    "bellman",
    "fraction_gradient",
    "midpoints",
    "normal",
    "project",
]
