"""The unconstrained monotonic neural network, one increasing function per action (section 4.2)."""

from __future__ import annotations

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from umdqn.networks.dense import Linear, Mlp, xavier_uniform
from umdqn.numerics.piecewise import relu_sum
from umdqn.numerics.products import product
from umdqn.numerics.quadrature import clenshaw_curtis, cumulative_trapezoid, kept
from umdqn.numerics.table import MonotoneTable, unit_nodes
from umdqn.specs import Key

# Below this the integrand would underflow and the function would stop increasing.
_SMALLEST_INTEGRAND = 1e-6


class Umnn(eqx.Module):
    r"""`G(x | h) = exp(scale(h)) * int_0^x g(t, h) dt + offset(h)` for every action.

    `g = ELU(net([t; h])) + 1 > 0`. The state's part of the first layer, `c(h)`, does not depend on
    t and is computed once; with one hidden layer the rest is a sum of ReLUs of t, evaluated on all
    nodes in O(H + M). The result is a `MonotoneTable` on evenly spaced nodes of [-1, 1].
    """

    point: Float[Array, "hidden"]
    context: Linear
    deeper: tuple[Linear, ...]
    output: Linear
    conditioner: Mlp
    intervals: int = eqx.field(static=True)

    def __init__(
        self,
        features: int,
        actions: int,
        hidden: tuple[int, ...],
        intervals: int,
        point_scale: float,
        steepness: float,
        key: Key,
    ):
        point_key, context_key, output_key, conditioner_key, *deeper_keys = jax.random.split(
            key, 4 + len(hidden) - 1
        )
        bound = point_scale * xavier_uniform(point_key, features + 1, hidden[0])
        self.point = bound[0]
        self.context = Linear(features, hidden[0], context_key)
        pairs = zip(hidden[:-1], hidden[1:], deeper_keys, strict=True)
        self.deeper = tuple(Linear(inputs, outputs, key) for inputs, outputs, key in pairs)
        self.output = Linear(hidden[-1], actions, output_key)
        conditioner = Mlp((features, *hidden, 2 * actions), conditioner_key)
        offset_and_scale = jnp.repeat(jnp.array([0.0, math.log(steepness)]), actions)
        self.conditioner = eqx.tree_at(
            lambda mlp: mlp.layers[-1].bias, conditioner, offset_and_scale
        )
        self.intervals = intervals

    def tables(self, features: Float[Array, "features"]) -> MonotoneTable:
        """The functions of all actions, on a leading axis."""
        offset, scale = jnp.split(self.conditioner(features), 2)
        one = partial(self._table, self.context(features))
        return jax.vmap(one)(self.output.weight.T, self.output.bias, offset, scale)

    def table(self, features: Float[Array, "features"], action: Int[Array, ""]) -> MonotoneTable:
        """The function of one action, at the cost of one action."""
        offset, scale = jnp.split(self.conditioner(features), 2)
        weights, bias = self.output.weight[:, action], self.output.bias[action]
        return self._table(self.context(features), weights, bias, offset[action], scale[action])

    def integrand(
        self, t: Float[Array, "points"], features: Float[Array, "features"]
    ) -> Float[Array, "points actions"]:
        """`g` at any points by the dense path, to check `relu_sum` against."""
        return _positive(self.output(self._hidden(t, self.context(features))))

    def exact(
        self, x: Float[Array, ""], features: Float[Array, "features"], steps: int = 50
    ) -> Float[Array, "actions"]:
        """`G(x | h)` of all actions by Clenshaw-Curtis quadrature, as the paper evaluates it."""
        offset, scale = jnp.split(self.conditioner(features), 2)
        area = clenshaw_curtis(lambda t: self.integrand(t, features), 0.0, x, steps)
        return jnp.exp(scale) * area + offset

    def _hidden(
        self, t: Float[Array, "points"], context: Float[Array, "hidden"]
    ) -> Float[Array, "points last"]:
        x = jax.nn.relu(t[:, None] * self.point + context)
        for layer in self.deeper:
            x = jax.nn.relu(layer(x))
        return x

    def _table(
        self,
        context: Float[Array, "hidden"],
        weights: Float[Array, "last"],
        bias: Float[Array, ""],
        offset: Float[Array, ""],
        scale: Float[Array, ""],
    ) -> MonotoneTable:
        """The table of one action, from the state's parts of it."""
        if self.deeper:
            logits = product(self._hidden(unit_nodes(self.intervals), context), weights)
        else:
            logits = relu_sum(self.point, context, weights, self.intervals)
        slopes = kept(jnp.exp(scale) * _positive(logits + bias))
        area = cumulative_trapezoid(slopes, 2.0 / self.intervals)
        heights = area - area[self.intervals // 2] + offset
        nodes = self.intervals + 1
        return MonotoneTable(heights[:nodes], slopes[:nodes], slopes[0], slopes[nodes - 1])


def _positive(logits: Float[Array, "..."]) -> Float[Array, "..."]:
    """`ELU + 1`, bounded away from zero; written with exp, which is much faster than expm1."""
    elu = jnp.where(logits > 0, logits + 1.0, jnp.exp(jnp.minimum(logits, 0.0)))
    return elu + _SMALLEST_INTEGRAND
