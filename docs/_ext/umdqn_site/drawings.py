"""What the figures of the site show: exact laws, a short training, and committed results."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import umdqn
from umdqn.analysis.accuracy import FIGURE_ACTION, FIGURE_STATE, truth
from umdqn.analysis.comparison import Scores, scores_of
from umdqn.envs.grid_world import ACTIONS, DISCOUNT, STATES
from umdqn.figures.style import COLOURS, panels
from umdqn.laws.bellman import bellman
from umdqn.laws.closed import GaussianMixture
from umdqn.laws.law import Law
from umdqn.runs.run import Run
from umdqn.sweeps.results import collect_all
from umdqn_site.links import ROOT

BLUE, RED, GREEN, _, ORANGE, SKY, _ = COLOURS
_WORST = 0.1
_STEPS, _EVERY = 20_000, 2_000
_SHOWN = (2_000, 6_000, _STEPS)
_WINDOW = 5
_Z = np.linspace(-1.55, 1.55, 801)
_TAU = np.linspace(0.001, 0.999, 801)


def _grey() -> str:
    return str(mpl.rcParams["axes.edgecolor"])


def _exact() -> list[Law]:
    return list(truth(DISCOUNT)[STATES.index(FIGURE_STATE)])


def _finish(axis: Axes, title: str, xlabel: str, ylabel: str = "") -> None:
    axis.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axis.grid(alpha=0.35)


@cache
def _trained() -> dict[int, Run]:
    """Train UMDQN-KL on the grid world for seconds; return the run at every checkpoint."""
    out = Path(tempfile.mkdtemp()) / "run"
    umdqn.train("grid-world", "umdqn-kl", steps=_STEPS, checkpoint_every=_EVERY, out=out)
    return {step: umdqn.load(out, step) for step in _SHOWN}


def views() -> Figure:
    """One law seen as density, CDF and quantile function, with its mean and its worst tenth."""
    law = _exact()[FIGURE_ACTION]
    pdf, cdf, quantiles = (np.asarray(x) for x in (law.pdf(_Z), law.cdf(_Z), law.quantile(_TAU)))
    low, average, worst = float(law.quantile(_WORST)), float(law.mean), float(law.cvar(_WORST))
    figure, ((left, middle, right),) = panels(1, 3, (10, 3.1))
    left.plot(_Z, pdf, color=BLUE)
    left.fill_between(_Z, pdf, where=low >= _Z, color=RED, alpha=0.35, linewidth=0)
    left.axvline(average, color=_grey(), linestyle="--", linewidth=1)
    left.annotate("mean", (average, 1.75), (-6, 0), textcoords="offset points", ha="right")
    left.axvline(worst, color=RED, linestyle="--", linewidth=1)
    left.annotate("CVaR 10%", (worst, 1.3), (-6, 0), textcoords="offset points", ha="right")
    _finish(left, "density: law.pdf(z)", "return z")
    middle.plot(_Z, cdf, color=BLUE)
    middle.plot([_Z[0], low, low], [_WORST, _WORST, 0], color=RED, linestyle="--", linewidth=1)
    _finish(middle, "CDF: law.cdf(z)", "return z")
    right.plot(_TAU, quantiles, color=BLUE)
    right.fill_between(_TAU, quantiles, where=_TAU <= _WORST, color=RED, alpha=0.35, linewidth=0)
    right.axhline(average, color=_grey(), linestyle="--", linewidth=1)
    _finish(right, "quantiles: law.quantile(tau)", "fraction tau")
    return figure


def actions() -> Figure:
    """The exact laws of the four actions of one state."""
    figure, ((axis,),) = panels(1, 1, (7, 3))
    for name, law, colour in zip(ACTIONS, _exact(), COLOURS, strict=False):
        label = f"{name}: mean {float(law.mean):.2f}"
        axis.plot(_Z, np.asarray(law.pdf(_Z)), color=colour, label=label)
        axis.axvline(float(law.mean), color=colour, linestyle=":", linewidth=1)
    _finish(axis, f"laws of the return at {FIGURE_STATE}", "return", "density")
    axis.legend()
    return figure


def learning() -> Figure:
    """A law at the checkpoints of a short training, over the exact one."""
    runs = _trained()
    figure, (axes,) = panels(1, len(runs), (10, 2.9), sharey=True)
    exact = np.asarray(_exact()[FIGURE_ACTION].pdf(_Z))
    for axis, (step, run) in zip(axes, runs.items(), strict=True):
        learned = np.asarray(run.law(FIGURE_STATE)[FIGURE_ACTION].pdf(_Z))
        axis.plot(_Z, exact, color=_grey(), linestyle=":", label="exact")
        axis.plot(_Z, learned, color=BLUE, label="learned")
        _finish(axis, f"{step:,} steps", "return")
    axes[0].set_ylabel("density")
    axes[0].legend()
    return figure


def push_forward() -> Figure:
    """From the law of the next state to its Bellman target."""
    law = _exact()[FIGURE_ACTION]
    steps = {
        "law of Z' (next state)": law,
        "law of 0.5 Z'": bellman(law, np.float32(0), np.float32(0.5)),
        "law of 0.4 + 0.5 Z'": bellman(law, np.float32(0.4), np.float32(0.5)),
    }
    figure, (axes,) = panels(1, 3, (10, 2.7), sharey=True, sharex=True)
    for axis, (title, one), colour in zip(axes, steps.items(), (BLUE, ORANGE, RED), strict=True):
        density = np.asarray(one.pdf(_Z))
        axis.plot(_Z, density, color=colour)
        axis.fill_between(_Z, density, color=colour, alpha=0.15, linewidth=0)
        axis.axvline(float(one.mean), color=_grey(), linestyle="--", linewidth=1)
        _finish(axis, title, "return")
    axes[0].set_ylabel("density")
    return figure


def distances() -> Figure:
    """What the three continuous metrics compare."""
    target = _exact()[FIGURE_ACTION]
    found = GaussianMixture(np.ones(1), np.array([0.55]), np.array([0.35]))
    figure, (axes,) = panels(1, 3, (10, 3))
    for axis, view, x in zip(axes, ("pdf", "cdf", "quantile"), (_Z, _Z, _TAU), strict=True):
        first, second = (np.asarray(getattr(law, view)(x)) for law in (target, found))
        axis.plot(x, first, color=BLUE, label="target")
        axis.plot(x, second, color=RED, label="prediction")
        if view != "pdf":
            axis.fill_between(x, first, second, color=ORANGE, alpha=0.3, linewidth=0)
    _finish(axes[0], "KL: densities", "return")
    _finish(axes[1], "Cramer: CDFs, gap squared", "return")
    _finish(axes[2], "Wasserstein: quantiles", "fraction")
    axes[0].legend()
    return figure


def supports() -> Figure:
    """Where a short training has put the supports of one state's laws."""
    laws = _trained()[_STEPS].law(FIGURE_STATE)
    figure, ((axis,),) = panels(1, 1, (8, 3))
    for place, law in enumerate(laws):
        colour, density = COLOURS[place], np.asarray(law.pdf(_Z))
        reach = 6 * float(law.std)
        ends = np.clip([float(law.mean) - reach, float(law.mean) + reach], -2.4, 2.4)
        axis.plot(ends, [-place, -place], color=colour, linewidth=5, alpha=0.3)
        axis.plot(float(law.mean), -place, "o", color=colour, markersize=5)
        axis.plot(_Z, 0.75 * density / density.max() - place, color=colour)
    axis.set_yticks([-place for place in range(len(ACTIONS))], ACTIONS)
    axis.set_xlim(-2.4, 2.4)
    _finish(axis, f"learned supports at {FIGURE_STATE}, {_STEPS:,} steps", "return")
    return figure


def risk() -> Figure:
    """Two laws of nearly the same mean, and how their worst shares compare."""
    safe = GaussianMixture(np.ones(1), np.array([0.9]), np.array([0.15]))
    weights = np.array([0.15, 0.85])
    bold = GaussianMixture(weights, np.array([-0.7, 1.3]), np.array([0.15, 0.15]))
    figure, ((left, right),) = panels(1, 2, (9, 3))
    z, shares = np.linspace(-1.4, 2, 601), (np.arange(400) + 0.5) / 400
    for law, name, colour in ((safe, "safe", BLUE), (bold, "bold", RED)):
        label = f"{name}: mean {float(law.mean):.2f}"
        left.plot(z, np.asarray(law.pdf(z)), color=colour, label=label)
        worst = np.cumsum(np.asarray(law.quantile(shares))) / np.arange(1, shares.size + 1)
        right.plot(shares, worst, color=colour)
    _finish(left, "laws of two actions", "return", "density")
    _finish(right, "mean of the worst share", "share alpha", "law.cvar(alpha)")
    left.legend()
    return figure


@cache
def _report() -> dict[str, Any]:
    return _trained()[_STEPS].calibration(300)


def calibration() -> Figure:
    """Learned against exact CDF, and where realised returns fall in their laws."""
    run = _trained()[_STEPS]
    law, exact = run.law(FIGURE_STATE)[FIGURE_ACTION], _exact()[FIGURE_ACTION]
    report = _report()
    figure, ((left, right),) = panels(1, 2, (9, 3.1))
    first, second = (np.asarray(one.cdf(_Z)) for one in (exact, law))
    left.plot(_Z, first, color=_grey(), linestyle=":", label="exact")
    left.plot(_Z, second, color=BLUE, label="learned")
    left.fill_between(_Z, first, second, color=ORANGE, alpha=0.5, linewidth=0, label="W1")
    _finish(left, "accuracy: against the exact law", "return", "CDF")
    left.legend()
    levels = {float(level): share for level, share in report["coverage"].items()}
    right.plot([0, 1], [0, 1], color=_grey(), linestyle=":", label="calibrated")
    right.plot(sorted(levels), [levels[k] for k in sorted(levels)], "o-", color=BLUE, label="run")
    _finish(right, "calibration: against realised returns", "interval of mass", "returns inside")
    right.legend()
    return figure


@cache
def _scores() -> Scores:
    return scores_of(collect_all([ROOT / "docs" / "short-study" / "results.csv"]))


def _smooth(returns: np.ndarray) -> np.ndarray:
    """Return the mean over the last evaluations, at each evaluation, along the last axis."""
    count = returns.shape[-1]
    starts = [max(i - _WINDOW + 1, 0) for i in range(count)]
    return np.stack([returns[..., start : i + 1].mean(-1) for i, start in enumerate(starts)], -1)


def curves(agent: str) -> Figure:
    """Learning curves of an agent in the short study, the other agents in grey."""
    scores = _scores()
    tasks = scores.repeated
    figure, axes = panels(2, 3, (10, 5))
    for task, axis in zip(tasks, axes.flat, strict=False):
        steps = scores.steps[task]
        for returns in (found[task] for found in scores.raw.values()):
            axis.plot(steps, _smooth(returns).mean(0), color=_grey(), linewidth=0.8, alpha=0.35)
        own = _smooth(scores.raw[agent][task])
        axis.plot(steps, own.mean(0), color=BLUE, linewidth=2)
        axis.fill_between(steps, own.min(0), own.max(0), color=BLUE, alpha=0.2, linewidth=0)
        axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k")
        _finish(axis, task, "steps")
    for axis in axes.flat[len(tasks) :]:
        axis.set_visible(False)
    axes[0][0].set_ylabel("return")
    axes[1][0].set_ylabel("return")
    return figure


def accuracy(agent: str) -> Figure:
    """Distance of the laws of all algorithms to the exact ones: a point per seed."""
    data = json.loads((ROOT / "docs" / "laws-study" / "results.json").read_text())
    results = data["sections"]["algorithms"]
    figure, ((axis,),) = panels(1, 1, (8, 3.2))
    for place, (name, result) in enumerate(results.items()):
        found = [seed["w1"] for seed in result["seeds"].values()]
        colour, alpha = (BLUE, 1.0) if name == agent else (_grey(), 0.45)
        axis.plot(found, [-place] * len(found), "o", color=colour, alpha=alpha, markersize=4)
    axis.set_yticks([-place for place in range(len(results))], list(results))
    for label in axis.get_yticklabels():
        label.set_fontweight("bold" if label.get_text() == agent else "normal")
    axis.set_xlim(left=0)
    steps = next(iter(results.values()))["step"]
    _finish(axis, f"distance to the exact laws after {steps:,} steps", "W1, all state-action pairs")
    return figure


FIGURES: dict[str, Callable[..., Figure]] = {
    "views": views,
    "actions": actions,
    "learning": learning,
    "push-forward": push_forward,
    "distances": distances,
    "supports": supports,
    "risk": risk,
    "calibration": calibration,
    "curves": curves,
    "accuracy": accuracy,
}
"""Figures by the name that pages use."""
