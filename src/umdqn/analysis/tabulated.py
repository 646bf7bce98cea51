"""Exact laws as tables: CDFs on grids, with views on [states, actions]."""

from __future__ import annotations

import dataclasses

import numpy as np

from umdqn.envs.finite import FiniteMdp


@dataclasses.dataclass(frozen=True, eq=False)
class ExactLaws:
    """Laws of the return of every state and action, and a bound of their error.

    Mean and standard deviation are exact to float precision; the CDF is that of a law on an even
    grid, whose W1 distance from the exact law is at most `error`.
    """

    mdp: FiniteMdp
    policy: np.ndarray
    """Probabilities of actions after the first one [S, A]."""
    discount: float
    offsets: np.ndarray
    """The grid [N], relative to the mean of each law."""
    table: np.ndarray
    """The CDF at the points of the grid [S, A, N]."""
    mean: np.ndarray
    std: np.ndarray
    error: np.ndarray
    """Bound of the W1 distance from the exact law [S, A]."""

    def __repr__(self) -> str:
        states, actions, points = self.table.shape
        return (
            f"ExactLaws({self.mdp.name!r}: {states} states, {actions} actions, discount "
            f"{self.discount:g}, {points} points, W1 error at most {self.error_bound:.2g})"
        )

    @property
    def z(self) -> np.ndarray:
        """The returns at which `table` has the CDF [S, A, N]."""
        return self.mean[..., None] + self.offsets

    @property
    def error_bound(self) -> float:
        """The largest `error`."""
        return float(self.error.max())

    def cdf(self, z: np.ndarray | float) -> np.ndarray:
        """Return the CDF at given returns: [S, A, ...], with the shape of `z` at the end."""
        shape = np.shape(z)
        flat = np.broadcast_to(np.reshape(z, -1), (*self.mean.shape, int(np.prod(shape))))
        return self.cdf_of_each(flat).reshape(*self.mean.shape, *shape)

    def cdf_of_each(self, z: np.ndarray) -> np.ndarray:
        """Return the CDF of each law at returns of its own [S, A, M]."""
        spacing = self.offsets[1] - self.offsets[0]
        # A return that lies on a point, up to rounding, counts as that point.
        place = (z - self.mean[..., None] - self.offsets[0]) / spacing + 1e-6
        cell = np.clip(np.floor(place), -1, len(self.offsets) - 1).astype(np.int64)
        found = np.take_along_axis(self.table, np.maximum(cell, 0), axis=-1)
        return np.where(cell < 0, 0.0, found)

    def quantile(self, tau: np.ndarray | float) -> np.ndarray:
        """Return the smallest return whose CDF is at least `tau`: [S, A, ...]."""
        place = self._places(np.reshape(tau, -1))
        found = self.mean[..., None] + self.offsets[place]
        return found.reshape(*self.mean.shape, *np.shape(tau))

    def cvar(self, alpha: float) -> np.ndarray:
        """Return the mean of the worst share `alpha` of returns [S, A]."""
        place = self._places(np.array([alpha]))
        spacing = self.offsets[1] - self.offsets[0]
        # E[Z | worst] = q - E[(q - Z)+] / alpha, with the integral of the CDF up to q.
        integral = spacing * (np.cumsum(self.table, axis=-1) - self.table)
        lost = np.take_along_axis(integral, place, axis=-1)[..., 0] / alpha
        return self.mean + self.offsets[place[..., 0]] - lost

    def _places(self, tau: np.ndarray) -> np.ndarray:
        rows = self.table.reshape(-1, len(self.offsets))
        # Rounding must not carry a fraction beyond the step that it belongs to.
        found = np.stack([np.searchsorted(row, tau - 1e-12) for row in rows])
        found = np.minimum(found, len(self.offsets) - 1)
        return found.reshape(*self.mean.shape, len(tau))


def distance(one: ExactLaws, other: ExactLaws) -> np.ndarray:
    """Return the W1 distance of the laws of each state and action [S, A]."""
    return np.array(
        [
            [_w1(one, other, (state, action)) for action in range(one.mean.shape[1])]
            for state in range(one.mean.shape[0])
        ]
    )


def _w1(one: ExactLaws, other: ExactLaws, pair: tuple[int, int]) -> float:
    grids = [laws.mean[pair] + laws.offsets for laws in (one, other)]
    tables = [np.concatenate([[0.0], laws.table[pair]]) for laws in (one, other)]
    z = np.sort(np.concatenate(grids))
    cdfs = [
        table[np.searchsorted(grid, z[:-1], side="right")]
        for grid, table in zip(grids, tables, strict=True)
    ]
    return float(np.sum(np.abs(cdfs[0] - cdfs[1]) * np.diff(z)))
