"""Presets as data: the paper's tables, and tuned ones."""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]

# Tables "Hyperparameters selected for ..." (appendix E), the same for all three UMDQNs. The
# discount and the domain are in the specifications of the environments.
_GRID_WORLD: Fields = {
    "support": "fixed",
    "torso.widths": (128, 128),
    "optimiser.learning_rate": 1e-4,
    "optimiser.epsilon": 1e-5,
    "update_every": 1,
    "target.every": 1_000,
    "replay.capacity": 10_000,
    "replay.batch_size": 32,
    "exploration.start": 1.0,
    "exploration.end": 0.01,
    "exploration.decay": 10_000,
    "evaluation.epsilon": 0.001,
}
_CLASSIC_CONTROL = dict(_GRID_WORLD)
_MINATAR: Fields = {
    **_GRID_WORLD,
    "optimiser.learning_rate": 5e-5,
    "update_every": 4,
    "target.every": 10_000,
    "replay.capacity": 100_000,
    "exploration.decay": 1_000_000,
}
# The reference goes from the convolutions to the embedding in one dense layer.
_ATARI: Fields = {**_MINATAR, "torso.widths": (128,)}


def _filled(table: Fields, **more: Any) -> Fields:
    """Add what a table leaves out: the reference fills its memory with random actions first."""
    return {**table, "replay.warmup": table["replay.capacity"], **more}


_UMDQN: Fields = {"representation.hidden": (128,), "metric.points": 200}
# The paper writes the root, its reference computes the square; only the square's gradient is
# unbiased, and only it reaches the paper's results.
_SQUARED: dict[str, Fields] = {"metric cramer": {"metric.root": False}}
# Settings for algorithms whose cost per point is high: as many fractions as IQN's authors draw, and
# fewer particles than the 200 of MMDQN's authors, since its cost is quadratic.
_FEWER: dict[str, Fields] = {
    "iqn": {"metric.points": 32},
    "mmdqn": {"representation.quantiles": 50},
}
_PAPER: dict[str, Fields] = {
    **_SQUARED,
    **_FEWER,
    **dict.fromkeys(("umdqn-kl", "umdqn-c", "umdqn-w"), _UMDQN),
}
# The reference's baselines use Adam as QR-DQN's authors do on Atari.
_ATARI_BASELINES: dict[str, Fields] = {
    agent: {"optimiser.epsilon": 3.125e-4} for agent in ("dqn", "cdqn", "qr-dqn", "iqn", "fqf")
}

# Shared by all tuned settings. A slow moving average as target network, n-step returns and double
# estimation reduce the maximisation bias of laws. At a discount of 0.99 the error of the mean falls
# by 0.99 with every step of the target network: rate, n_step and length of a run belong together.
_TRUE: Fields = {
    "metric.sampling": "stratified",
    "optimiser.epsilon": 1e-8,
    "optimiser.schedule": "cosine",
    "target": "polyak",
    "target.rate": 0.005,
    "double": True,
}
# Huber's threshold shifts quantiles a little towards expectiles with each backup, and at a discount
# of 0.99 a hundred backups add up: laws lose their shape even at 0.05 standard deviations. So there
# is none. Bandwidths count in standard deviations of a law, from fine to coarse.
_UNITS: dict[str, Fields] = {
    "metric wasserstein": {"metric.kappa": 0.0},
    "metric mmd": {"metric.bandwidths": (0.1, 1.0, 10.0)},
}
# The law of a fixed policy takes no maximum over actions: nothing has to be held down, and the
# target network can follow faster. A rare action has few samples: a long sum of rewards repeats
# these few, while bootstrapping averages over all visits of the next state. So two steps instead of
# four.
_FOLLOWED: Fields = {"replay.n_step": 2, "target.rate": 0.01, "double": False}
_TUNED: dict[str, Fields] = {**_SQUARED, **_UNITS, **_FEWER, "policy": _FOLLOWED}
_CONTROL: Fields = {
    **_TRUE,
    "metric.points": 100,
    "optimiser.learning_rate": 1e-3,
    "replay.capacity": 100_000,
    "replay.batch_size": 64,
    "replay.n_step": 4,
    "update_every": 2,
    "exploration.end": 0.05,
    "exploration.decay": 5_000,
}

PRESETS: dict[str, dict[str, dict[str, Fields]]] = {
    "paper": {
        "grid-world": {"all": _filled(_GRID_WORLD), **_PAPER},
        "classic-control": {"all": _filled(_CLASSIC_CONTROL, steps=100_000), **_PAPER},
        # Not in the paper: its settings for classic control.
        "finite": {"all": _filled(_CLASSIC_CONTROL, steps=200_000), **_PAPER},
        "minatar": {
            "all": _filled(
                _MINATAR, steps=1_000_000, **{"evaluation.every": 50_000, "evaluation.episodes": 20}
            ),
            **_PAPER,
        },
        "atari": {
            "all": _filled(
                _ATARI, steps=1_000_000, **{"evaluation.every": 50_000, "evaluation.episodes": 5}
            ),
            **_PAPER,
            **_ATARI_BASELINES,
        },
    },
    "tuned": {
        # For accurate laws: exploration that visits every state-action pair about equally often, a
        # memory of the whole run, comparison points that cover the support evenly, a learning rate
        # that falls to 0, and hardly any clipping: it weakens the batches with a rare outcome.
        "grid-world": {
            "all": {
                "steps": 300_000,
                **_TRUE,
                "optimiser.learning_rate": 1e-3,
                "replay.capacity": 300_000,
                "exploration.start": 0.8,
                "exploration.end": 0.8,
                "optimiser.clip": 10.0,
            },
            **_TUNED,
            # The Cramer distance hardly changes where a mode is blurred, and quantiles between two
            # modes hardly have a gradient: both need a sharper start.
            "umdqn-c": {"representation.point_scale": 60.0},
            "umdqn-w": {"representation.point_scale": 60.0},
        },
        # For policies that work within 100,000 steps.
        "classic-control": {
            "all": {"steps": 100_000, **_CONTROL},
            # Random actions that change at every step never reach the top of the hill.
            "MountainCar-v0": {
                "steps": 200_000,
                "exploration.decay": 10_000,
                "exploration.repeat": 15,
            },
            "LunarLander-v3": {"steps": 300_000, "exploration.decay": 15_000},
            **_TUNED,
        },
        # As for classic control, with a memory that keeps everything, and sharper starts: laws of
        # few states have gaps and atoms.
        "finite": {
            "all": {"steps": 200_000, **_CONTROL, "replay.capacity": 200_000},
            **_TUNED,
            "umdqn-kl": {"representation.point_scale": 20.0},
            "umdqn-c": {"representation.point_scale": 20.0},
            "umdqn-w": {"representation.point_scale": 60.0},
        },
        # For a million steps: a learning rate ten times the paper's, and a target network that
        # follows ten times as fast.
        "minatar": {
            "all": {
                "steps": 1_000_000,
                "torso.widths": (128,),
                "metric.points": 100,
                "metric.sampling": "stratified",
                "optimiser.learning_rate": 5e-4,
                "optimiser.schedule": "cosine",
                "replay.capacity": 100_000,
                "replay.batch_size": 64,
                "update_every": 4,
                "target.every": 1_000,
                "exploration.end": 0.02,
                "exploration.decay": 50_000,
                "evaluation.every": 50_000,
                "evaluation.episodes": 20,
            },
            **_SQUARED,
            **_FEWER,
        },
        # For a few hundred thousand steps.
        "atari": {
            "all": {
                "steps": 200_000,
                "torso.widths": (128,),
                "metric.points": 100,
                "metric.sampling": "stratified",
                "optimiser.learning_rate": 2.5e-4,
                "optimiser.schedule": "cosine",
                "replay.capacity": 100_000,
                "replay.warmup": 5_000,
                "update_every": 4,
                "target.every": 2_000,
                "exploration.end": 0.02,
                "exploration.decay": 15_000,
                "evaluation.every": 20_000,
                "evaluation.episodes": 5,
            },
            **_SQUARED,
            **_FEWER,
        },
    },
}
"""Fields by preset, family of environments, and scope: `all`, an environment, `policy` (where a
fixed policy is followed), a part such as `metric cramer`, or an agent whose representation and
metric are unchanged. Later scopes win; fields that the chosen parts do not have are skipped."""
