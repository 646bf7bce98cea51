"""What happened in a chunk of training steps."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from umdqn.agents.state import Outcome
from umdqn.specs import AnyArray


class Progress(NamedTuple):
    """Sums over a chunk, for one seed."""

    episodes: Int[AnyArray, ""]
    """Episodes that ended."""
    returns: Float[AnyArray, ""]
    """Sum of their undiscounted returns."""
    updates: Int[AnyArray, ""]
    loss: Float[AnyArray, ""]
    """Sum of the losses."""
    clipped: Int[AnyArray, ""]
    """Updates whose gradient was clipped."""
    edge_mass: Float[AnyArray, ""]
    """Sum of the mass of predicted laws at the edges of their supports."""
    first_bad_step: Int[AnyArray, ""]
    """Step of the first update whose loss or result was not finite, or -1."""

    @classmethod
    def none(cls) -> Progress:
        """Return the progress of no steps."""
        # An array per field: a program cannot be given the same donated array twice.
        count, total = partial(jnp.zeros, (), jnp.int32), partial(jnp.zeros, (), jnp.float32)
        return cls(count(), total(), count(), total(), count(), total(), jnp.int32(-1))

    def after_update(self, outcome: Outcome, step: Int[Array, ""]) -> Progress:
        """Return the progress with one more update, made at a step."""
        bad = ~jnp.isfinite(outcome.loss) & (self.first_bad_step < 0)
        return self._replace(
            updates=self.updates + 1,
            loss=self.loss + outcome.loss,
            clipped=self.clipped + outcome.clipped.astype(jnp.int32),
            edge_mass=self.edge_mass + outcome.edge_mass,
            first_bad_step=jnp.where(bad, step, self.first_bad_step),
        )


def check_finite(params: PyTree, step: Int[AnyArray, ""] | int, progress: Progress) -> Progress:
    """Record parameters that the last update made infinite or NaN before any loss showed it."""
    finite = jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(params)])
    bad = ~jnp.all(finite) & (progress.first_bad_step < 0)
    return progress._replace(first_bad_step=jnp.where(bad, step, progress.first_bad_step))
