"""Supports: where laws are resolved, and in which units learning counts."""

from umdqn.parts.table import Table

SUPPORTS = Table(
    "support",
    "umdqn.supports.support_rule:SupportRule",
    {
        "learned": "umdqn.supports.learned:LearnedSupport",
        "fixed": "umdqn.supports.fixed:FixedSupport",
    },
)
