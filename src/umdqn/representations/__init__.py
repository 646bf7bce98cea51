"""Representations: heads that turn an embedding into laws of the return."""

from umdqn.parts.table import Table

REPRESENTATIONS = Table(
    "representation",
    "umdqn.representations.representation:Representation",
    {
        "umnn-pdf": "umdqn.representations.umnn:UmnnPdf",
        "umnn-cdf": "umdqn.representations.umnn:UmnnCdf",
        "umnn-qf": "umdqn.representations.umnn:UmnnQf",
        "expectation": "umdqn.representations.discrete:Expectation",
        "categorical": "umdqn.representations.discrete:Categorical",
        "quantiles": "umdqn.representations.discrete:Quantiles",
        "non-crossing-quantiles": "umdqn.representations.discrete:NonCrossingQuantiles",
        "implicit-quantiles": "umdqn.representations.implicit:ImplicitQuantiles",
        "proposed-quantiles": "umdqn.representations.proposed:ProposedQuantiles",
    },
)
"""Representations by name."""
