"""Laws of the random return, and the representations by which networks parameterise them."""

from umdqn.laws.bellman import Affine, Either, bellman
from umdqn.laws.closed import Dirac, GaussianMixture, Uniform, normal
from umdqn.laws.flow import FlowLaw
from umdqn.laws.law import Law
from umdqn.laws.quantile import QuantileLaw
from umdqn.laws.representation import Head, Representation
from umdqn.laws.umnn import UmnnCdf, UmnnPdf, UmnnQf

REPRESENTATIONS: dict[str, type[Representation]] = {
    "umnn-pdf": UmnnPdf,
    "umnn-cdf": UmnnCdf,
    "umnn-qf": UmnnQf,
}
"""Every representation by the name that users type."""

__all__ = [
    "REPRESENTATIONS",
    "Affine",
    "Dirac",
    "Either",
    "FlowLaw",
    "GaussianMixture",
    "Head",
    "Law",
    "QuantileLaw",
    "Representation",
    "UmnnCdf",
    "UmnnPdf",
    "UmnnQf",
    "Uniform",
    "bellman",
    "normal",
]
