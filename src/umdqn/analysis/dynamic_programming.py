"""Exact laws of finite MDPs by distributional dynamic programming, with a bound of their error.

The Bellman backup (`umdqn.analysis.backup`) is iterated on a grid of spacing h.

Error bound. Each backup adds a rounding error of mean 0, given the episode and all later errors,
and of variance at most h^2 / 4. So the errors of an episode add up like independent ones: the
Wasserstein-2 distance from the exact law, and with it W1, is at most
`h / 2 (E sum_t discount^(2t))^(1/2)`, which is `h / 2 / (1 - discount^2)^(1/2)` if episodes never
end. Gaussian reward noise is rounded likewise, which doubles the variance. To this are added what
is left of the iteration (a backup contracts W1 by the discount) and what the ends of the grid cut
off.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from umdqn.analysis.backup import NOISE_WIDTHS, Backup, Grid, Outcomes, gaussian_integral
from umdqn.analysis.planning import (
    Moments,
    accumulated,
    continuation,
    moments,
    optimal_policy,
    read_discount,
    read_policy,
)
from umdqn.analysis.tabulated import ExactLaws
from umdqn.envs.finite import FiniteMdp
from umdqn.errors import check_count

# Numbers in the sparse matrix of a backup (about 10 ms per backup), and in the tables of all laws.
_ENTRIES, _TABLES = 4_000_000, 8_000_000
_FEWEST_POINTS, _MOST_POINTS = 1_000, 20_001
# Half the width of the grid, in standard deviations; doubled if the ends cut off too much.
_WIDTHS = 10.0
_MOST_DOUBLINGS = 4
# Rest of the iteration, and what the ends may cut off, as shares of the rounding error.
_REST, _CUT = 0.05, 0.2
_CHECK_EVERY = 20
# Backups that no iteration needs, in units of the horizon 1 / (1 - discount).
_MOST_HORIZONS = 30


def exact_laws(
    mdp: FiniteMdp | tuple[Any, Any],
    policy: Any = None,
    discount: float | None = None,
    points: int | None = None,
) -> ExactLaws:
    """Return the law of the return of every state and action, followed by a policy.

    `mdp` is a `FiniteMdp`, or a pair of transition probabilities [S, A, S] and rewards [S, A] or
    [S, A, S]. `policy` is an array of actions [S] or of probabilities [S, A]; by default it is an
    optimal one. Episodes run until they terminate: there is no time limit. More `points` of the
    grid make the bound of the error smaller, and take longer.
    """
    if not isinstance(mdp, FiniteMdp):
        mdp = FiniteMdp.from_arrays(*mdp)
    discount = read_discount(mdp, discount)
    chosen = optimal_policy(mdp, discount) if policy is None else read_policy(mdp, policy)
    if points is not None:
        check_count("points", points, least=10)
    problem = _Problem.of(mdp, chosen, discount)
    count = _points(problem) if points is None else points
    widths = _WIDTHS
    for _ in range(_MOST_DOUBLINGS):
        grid = _grid(problem, widths, count)
        solution = _iterated(problem, grid)
        if solution.cut.max() <= _CUT * np.sqrt(_rounding(problem, grid).max()):
            break
        widths *= 2
    return _laws_of_pairs(problem, grid, solution)


class _Problem(NamedTuple):
    """A policy of an MDP, and what follows from it."""

    mdp: FiniteMdp
    policy: np.ndarray
    discount: float
    moves: np.ndarray
    chain: np.ndarray
    """Probability of going on to each state, by action [S, A, S] and under the policy [S, S]."""
    moments: Moments
    outcomes: Outcomes

    @classmethod
    def of(cls, mdp: FiniteMdp, policy: np.ndarray, discount: float) -> _Problem:
        moves = continuation(mdp)
        chain = np.einsum("sa,sat->st", policy, moves)
        outcomes = Outcomes.of(mdp, policy[:, :, None] * mdp.probability, discount)
        return cls(mdp, policy, discount, moves, chain, moments(mdp, policy, discount), outcomes)


class _Solution(NamedTuple):
    """Laws of states on a grid, and bounds of two of their errors [S]."""

    integrals: np.ndarray
    rest: np.ndarray
    """W1 from the fixed point of the iteration."""
    cut: np.ndarray
    """W1 that the ends of the grid add."""


def _points(problem: _Problem) -> int:
    """Return how many points can be afforded."""
    most = min(_ENTRIES / (2 * len(problem.outcomes.row)), _TABLES / problem.policy.size)
    return int(np.clip(most, _FEWEST_POINTS, _MOST_POINTS))


def _grid(problem: _Problem, widths: float, points: int) -> Grid:
    """Return a grid that holds every law around its mean."""
    exact, discount = problem.moments, problem.discount
    widest = widths * float(max(exact.std.max(), exact.state_std.max()))
    least = 1e-9 * max(float(np.abs(exact.mean).max()), 1e-30)
    if widest <= least:
        return Grid(least, 2, 2)
    low, high = problem.mdp.return_bounds(discount)
    noise = NOISE_WIDTHS * float(np.max(problem.mdp.reward_std)) / (1 - discount**2) ** 0.5
    below = min(float(np.max(exact.mean - low[:, None])) + noise, widest)
    above = min(float(np.max(high[:, None] - exact.mean)) + noise, widest)
    spacing = (below + above) / (points - 5)
    return Grid(spacing, int(np.ceil(below / spacing)) + 1, int(np.ceil(above / spacing)) + 1)


def _rounding(problem: _Problem, grid: Grid) -> np.ndarray:
    """Return the bound of the rounding errors' variance in the laws of states [S]."""
    once = grid.spacing**2 / 4 * (2 if np.any(problem.mdp.reward_std) else 1)
    steps = accumulated(problem.chain, np.ones(len(problem.chain)), problem.discount**2)
    return once * steps


def _iterated(problem: _Problem, grid: Grid) -> _Solution:
    """Back up Gaussians of the right mean and variance until they hardly change."""
    chain, discount, exact = problem.chain, problem.discount, problem.moments
    backup = Backup(problem.outcomes, exact.state_mean, exact.state_mean, grid)
    laws = gaussian_integral(grid.offsets(), exact.state_std[:, None])
    enough = _REST * np.sqrt(_rounding(problem, grid).max())
    most = int(np.ceil(_MOST_HORIZONS / (1 - discount)))
    for count in range(1, most + 1):
        before = laws
        laws, low_cut = backup(before)
        if count % _CHECK_EVERY == 0 or count == most:
            # W1 of two laws is the total variation of the difference of their integrals.
            change = np.abs(np.diff(laws - before, axis=1)).sum(axis=1)
            rest = discount * chain @ accumulated(chain, change, discount)
            if rest.max() <= enough:
                break
    shift, shift_before = (grid.offsets()[-1] - found[:, -1] for found in (laws, before))
    high_cut = discount * chain @ shift_before + low_cut - shift
    cut = accumulated(chain, np.abs(low_cut) + np.abs(high_cut), discount)
    return _Solution(laws, rest, cut)


def _laws_of_pairs(problem: _Problem, grid: Grid, solution: _Solution) -> ExactLaws:
    """Return the laws of state-action pairs: one more backup, of every action."""
    mdp, exact, discount = problem.mdp, problem.moments, problem.discount
    tables = np.empty((mdp.num_states, mdp.num_actions, grid.size))
    cuts = np.empty(tables.shape[:2])
    for action in range(mdp.num_actions):
        alone = np.where(np.arange(mdp.num_actions) == action, 1.0, 0.0)
        outcomes = Outcomes.of(mdp, alone[:, None] * mdp.probability, discount)
        backup = Backup(outcomes, exact.mean[:, action], exact.state_mean, grid)
        integrals, cuts[:, action] = backup(solution.integrals)
        tables[:, action, :-1] = np.diff(integrals, axis=1) / grid.spacing
    tables[:, :, -1] = 1.0
    tables = np.maximum.accumulate(np.clip(tables, 0.0, 1.0), axis=-1)
    once = grid.spacing**2 / 4 * (2 if np.any(mdp.reward_std) else 1)
    rounding = once + discount**2 * problem.moves @ _rounding(problem, grid)
    others = discount * problem.moves @ (solution.rest + solution.cut) + cuts
    error = np.sqrt(rounding) + others
    return ExactLaws(
        mdp, problem.policy, discount, grid.offsets(), tables, exact.mean, exact.std, error
    )
