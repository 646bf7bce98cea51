"""The Bellman backup of laws on grids, as a sparse linear operator.

A law is kept as `I(z) = E[(z - Z)+]`, the integral of its CDF, on an even grid around its mean. The
backup is linear in it: an outcome of probability p with reward r gives
`p discount I'((z - r) / discount)`, and I is linear between grid points. Reading the backup at grid
points is the same as moving the mass of every atom to its two neighbours so that the mean stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.sparse import csr_array
from scipy.special import ndtr

from umdqn.envs.finite import FiniteMdp

NOISE_WIDTHS = 8.5
"""Standard deviations of Gaussian noise beyond which nothing is left in float precision."""


class Outcomes(NamedTuple):
    """All outcomes of some rows (states, or state-action pairs) as flat arrays."""

    row: np.ndarray
    probability: np.ndarray
    next_state: np.ndarray
    reward: np.ndarray
    reward_std: np.ndarray
    weight: np.ndarray
    """The discount, or 0 where the episode ends."""

    @classmethod
    def of(cls, mdp: FiniteMdp, probability: np.ndarray, discount: float) -> Outcomes:
        """Return the outcomes of states that have a positive probability [S, A, K]."""
        found = probability > 0
        return cls(
            np.nonzero(found)[0],
            probability[found],
            mdp.next_state[found],
            mdp.reward[found],
            np.asarray(mdp.reward_std)[found],
            np.where(np.asarray(mdp.terminated)[found], 0.0, discount),
        )


class Grid(NamedTuple):
    """Even points around the mean of a law; a point lies on the mean itself."""

    spacing: float
    below: int
    above: int

    @property
    def size(self) -> int:
        """The number of points."""
        return self.below + self.above + 1

    def offsets(self, margin: int = 0) -> np.ndarray:
        """Return the points relative to the mean, with `margin` more on both sides."""
        return self.spacing * np.arange(-self.below - margin, self.above + margin + 1)


class _Part(NamedTuple):
    """The backup of all outcomes whose rewards have the same noise: `matrix @ I + constant`."""

    matrix: csr_array
    constant: np.ndarray
    kernel: np.ndarray | None
    """The Gaussian on the grid, or None without noise."""


class Backup:
    """The Bellman backup from laws of states to the laws of some rows."""

    def __init__(
        self, outcomes: Outcomes, row_mean: np.ndarray, state_mean: np.ndarray, grid: Grid
    ):
        self._grid, self._rows = grid, len(row_mean)
        self._parts = []
        for std in np.unique(outcomes.reward_std):
            same = outcomes.reward_std == std
            some = Outcomes(*(field[same] for field in outcomes))
            kernel = _noise(float(std), grid.spacing) if std > 0 else None
            margin = 0 if kernel is None else len(kernel) // 2
            matrix, constant = _shifted(some, row_mean, state_mean, grid, margin)
            self._parts.append(_Part(matrix, constant, kernel))

    def __call__(self, integrals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the integrals of the new laws, and what the lower end of the grid cut off."""
        found = np.zeros((self._rows, self._grid.size))
        for part in self._parts:
            values = (part.matrix @ integrals.reshape(-1) + part.constant).reshape(self._rows, -1)
            found += values if part.kernel is None else _convolved(values, part.kernel)
        cut = found[:, 0].copy()
        # Moves mass from below the grid to its end: E[(z - max(Z, z_0))+] = I(z) - I(z_0).
        return found - cut[:, None], cut


def _shifted(
    outcomes: Outcomes, row_mean: np.ndarray, state_mean: np.ndarray, grid: Grid, margin: int
) -> tuple[csr_array, np.ndarray]:
    """Return the backup without noise, on the grid with a margin, as a matrix and a constant."""
    offsets, last = grid.offsets(margin), grid.size - 1
    z = row_mean[outcomes.row][:, None] + offsets - outcomes.reward[:, None]
    weight, probability = outcomes.weight[:, None], outcomes.probability[:, None]
    goes_on = weight > 0
    ahead = z / np.where(goes_on, weight, 1.0) - state_mean[outcomes.next_state][:, None]
    place = np.clip(ahead / grid.spacing + grid.below, 0, last)
    cell = np.minimum(place.astype(np.int64), last - 1)
    upper = place - cell
    column = outcomes.next_state[:, None] * grid.size + cell
    row = outcomes.row[:, None] * len(offsets) + np.arange(len(offsets))
    share = np.where(goes_on, weight * probability, 0.0)
    entries = np.stack([share * (1 - upper), share * upper])
    rows, columns = np.stack([row, row]), np.stack([column, column + 1])
    kept = entries != 0
    shape = (len(row_mean) * len(offsets), len(state_mean) * grid.size)
    matrix = csr_array((entries[kept], (rows[kept], columns[kept])), shape=shape)
    # Above the grid the integral has slope 1; at the end of an episode it is (z - r)+.
    beyond = np.maximum(ahead - grid.spacing * grid.above, 0.0)
    constant = probability * np.where(goes_on, weight * beyond, np.maximum(z, 0.0))
    sums = np.bincount(row.reshape(-1), constant.reshape(-1), shape[0])
    return matrix, sums


def gaussian_integral(offsets: np.ndarray, std: np.ndarray | float) -> np.ndarray:
    """Return `E[(u - X)+]` for X of mean 0 and the given standard deviation, Gaussian or 0."""
    positive = np.maximum(std, 1e-300)
    x = offsets / positive
    density = np.exp(-0.5 * np.minimum(np.abs(x), 40.0) ** 2) / np.sqrt(2 * np.pi)
    return np.where(np.abs(x) < 38, offsets * ndtr(x) + positive * density, np.maximum(offsets, 0))


def _noise(std: float, spacing: float) -> np.ndarray:
    """Return a Gaussian rounded to multiples of the spacing, with its mean kept."""
    half = int(np.ceil(NOISE_WIDTHS * std / spacing)) + 1
    integral = gaussian_integral(spacing * np.arange(-half - 1, half + 2), std)
    kernel = np.maximum(np.diff(integral, 2), 0.0)
    kernel = kernel + kernel[::-1]
    return kernel / kernel.sum()


def _convolved(values: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Convolve rows with a symmetric kernel, where it lies inside of them."""
    length = next_fast_len(values.shape[1], real=True)
    # Circular: only the ends of the rows are wrong, and those are dropped.
    product = rfft(values, length, axis=1) * rfft(kernel, length)
    return irfft(product, length, axis=1)[:, len(kernel) - 1 : values.shape[1]]
