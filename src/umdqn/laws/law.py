"""The law of a random return: a value with views, whatever represents it."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from umdqn.laws.showing import View, as_html, as_text, plot
from umdqn.parts.ranges import Range
from umdqn.specs import Key

# Views without a closed form integrate the CDF between these two quantiles.
_TAIL = 1e-6
_INTEGRATION_CELLS = 4096
# A CRPS is integrated between these quantiles: 256 cells of equal mass, finer ones in the tails.
_MIDDLE = (np.arange(256) + 0.5) / 256
_TAILS = np.geomspace(_TAIL, _MIDDLE[0], 9)[:-1]
_SCORED = np.concatenate([_TAILS, _MIDDLE, 1 - _TAILS[::-1]])
# Mass within this share of the support's width from a bound counts as mass at its edge.
_EDGE = 0.01
_FRACTION, _TAIL_SHARE = Range(least=0, most=1), Range(above=0, most=1)

T = TypeVar("T")
Points = Float[ArrayLike, "..."] | Sequence[Any]
"""Where a law is viewed: a number, an array or a list of numbers."""


class Law(eqx.Module):
    """A probability distribution of the return, or many of them on leading axes.

    Every array in a law has the same leading axes, `shape`: none for a single law, `[actions]` for
    the laws of a state, `[batch, actions]` for many states. A view at points `z` evaluates each law
    at every point and has the shape `shape + z.shape`. Subclasses write their views for one law,
    in methods that begin with an underscore, and `mean` for any leading axes.
    """

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Leading axes."""

    @property
    @abc.abstractmethod
    def mean(self) -> Float[Array, "*laws"]:
        """Expectation of the return."""

    @abc.abstractmethod
    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]: ...

    @abc.abstractmethod
    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]: ...

    @abc.abstractmethod
    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]: ...

    def cdf(self, z: Points) -> Float[Array, "..."]:
        """Probability that the return is at most z."""
        return self._each(lambda law: law._cdf(jnp.asarray(z, float)))

    def log_pdf(self, z: Points) -> Float[Array, "..."]:
        """Logarithm of the density at z."""
        return self._each(lambda law: law._log_pdf(jnp.asarray(z, float)))

    def pdf(self, z: Points) -> Float[Array, "..."]:
        """Density at z."""
        return jnp.exp(self.log_pdf(z))

    def quantile(self, tau: Points) -> Float[Array, "..."]:
        """The return below which a share tau of the mass lies, for tau from 0 to 1."""
        _check_concrete("tau", tau, _FRACTION)
        return self._each(lambda law: law._quantile(jnp.asarray(tau, float)))

    @property
    def median(self) -> Float[Array, "*laws"]:
        """The return that is exceeded as often as not."""
        return self.quantile(0.5)

    def spread_cdf(self, z: Points) -> Float[Array, "..."]:
        """The integral of `pdf`: equal to the CDF, unless mass lies at points."""
        return self._each(lambda law: law._spread_cdf(jnp.asarray(z, float)))

    @property
    def variance(self) -> Float[Array, "*laws"]:
        """Variance of the return."""
        return self._each(lambda law: law._variance())

    @property
    def std(self) -> Float[Array, "*laws"]:
        """Standard deviation of the return."""
        return jnp.sqrt(jnp.maximum(self.variance, 0.0))

    def cvar(self, alpha: float) -> Float[Array, "*laws"]:
        """Expectation of the worst share alpha of returns, for 0 < alpha <= 1."""
        _check_concrete("alpha", alpha, _TAIL_SHARE)
        return self._each(lambda law: law._cvar(alpha))

    def crps(self, z: Points) -> Float[Array, "..."]:
        """Continuous ranked probability score of the law if z happens: smaller is better.

        `int (F(x) - 1[x >= z])^2 dx`, in units of returns; of a point it is the distance to z
        (Gneiting and Raftery, "Strictly proper scoring rules", 2007).
        """
        return self._each(lambda law: law._crps(jnp.asarray(z, float)))

    @property
    def edge_mass(self) -> Float[Array, "*laws"] | None:
        """Mass at or beyond the bounds of the support, its outermost hundredths included.

        None if the law has no bounds. Such mass probably belongs outside of the support.
        """
        return None

    def sample(self, key: Key | int, count: int) -> Float[Array, "*laws count"]:
        """Draw independent returns by the inverse transform, with a key of JAX or a seed."""
        if isinstance(key, int | np.integer):
            key = jax.random.key(int(key))
        if not self.shape:
            return self._sample(key, count)
        draw: Callable[[Law, Key], Array] = lambda law, key: law._sample(key, count)  # noqa: E731
        for _ in self.shape:
            draw = jax.vmap(draw)
        return draw(self.settled(), jax.random.split(key, self.shape))

    def confined(self) -> Law:
        """Return the law for targets and decisions: none of it lies outside of a fixed support."""
        return self

    def settled(self) -> Law:
        """Return the same law as a value of its own, which needs no network."""
        return self

    def _sample(self, key: Key, count: int) -> Float[Array, "count"]:
        # An open interval: the quantile at exactly 0 or 1 may be infinite.
        smallest = float(jnp.finfo(jnp.float32).tiny)
        return self._quantile(jax.random.uniform(key, (count,), minval=smallest, maxval=1.0))

    def _spread_cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self._cdf(z)

    def _variance(self) -> Float[Array, ""]:
        """`E[(Z - mean)^2]`, from `int 2 (z - mean) (1[z > mean] - F(z)) dz`."""
        z = self._grid(1 - _TAIL)
        centred = z - self.mean
        return jnp.trapezoid(2 * centred * ((centred > 0) - self._cdf(z)), z)

    def _cvar(self, alpha: float) -> Float[Array, ""]:
        z = self._grid(min(alpha, 1 - _TAIL))
        return z[-1] - jnp.trapezoid(self._cdf(z), z) / alpha

    def _crps(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """Integrate over cells between quantiles, with the CDF in the middle of each.

        Cells are narrow where the mass is, and the CDF of a gap between masses is exact.
        """
        ends = self._quantile(jnp.asarray(_SCORED, jnp.float32))
        low, high = ends[:-1], ends[1:]
        cdf = self._cdf((low + high) / 2)
        split = jnp.clip(z[..., None], low, high)
        inside = (split - low) * cdf**2 + (high - split) * (1 - cdf) ** 2
        return jnp.sum(inside, axis=-1) + jnp.abs(z - jnp.clip(z, ends[0], ends[-1]))

    def _mass_at_edges(self, low: Float[Array, ""], high: Float[Array, ""]) -> Float[Array, ""]:
        near = _EDGE * (high - low)
        below, inside = self._cdf(jnp.stack([low + near, high - near]))
        return below + 1 - inside

    def _grid(self, top: float) -> Float[Array, "points"]:
        low, high = self._quantile(jnp.asarray([_TAIL, top]))
        return jnp.linspace(low, high, _INTEGRATION_CELLS + 1)

    def _each(self, view: Callable[[Law], T]) -> T:
        """Apply a function of one law to all laws."""
        for _ in self.shape:
            view = jax.vmap(view)
        return view(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single law has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Law]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Law:
        """Return the law, or laws, at `index` of the first axis: a number, a slice or an array."""
        if isinstance(index, int | np.integer) and not -len(self) <= index < len(self):
            raise IndexError(f"law {index} of {len(self)}")
        return jax.tree.map(lambda leaf: leaf[index], self)

    def plot(self, axes: Any = None, view: View = "pdf") -> Any:
        """Draw densities, or another view, on Matplotlib's axes, which are returned."""
        return plot(self, axes, view)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def _check_concrete(field: str, value: Any, allowed: Range) -> None:
    """Check numbers that are known; those of a program that is being compiled are not."""
    if isinstance(value, jax.core.Tracer):
        return
    found = np.asarray(value)
    if found.ndim == 0 or found.dtype.kind not in "iuf":
        allowed.check(field, found.item() if found.ndim == 0 else value)
    elif found.size:
        # NaN is neither, and comes out of both.
        for extreme in (found.min(), found.max()):
            allowed.check(field, float(extreme))
