"""Peers to measure against: SB3's DQN and QR-DQN, and UMDQN-C on the `UMNN` package."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_contrib import QRDQN
from stable_baselines3 import DQN
from UMNN import MonotonicNN

import umdqn  # noqa: F401  (registers the grid world)

BATCH, POINTS, FEATURES, ACTIONS, DISCOUNT = 32, 200, 128, 4, 0.5


def sb3(kind: type, **policy: Any) -> Callable[[int], float]:
    """Steps a second of an SB3 algorithm on the grid world, one update a step."""
    model = kind(
        "MlpPolicy",
        gymnasium.make("umdqn/GridWorld-v0"),
        learning_rate=1e-4,
        buffer_size=10_000,
        learning_starts=100,
        batch_size=BATCH,
        gamma=DISCOUNT,
        train_freq=1,
        gradient_steps=1,
        target_update_interval=1_000,
        exploration_initial_eps=0.05,
        exploration_final_eps=0.05,
        policy_kwargs={"net_arch": [128, 128], **policy},
        device="cpu",
        seed=0,
    )
    model.learn(300)

    def rate(steps: int) -> float:
        start = time.perf_counter()
        model.learn(steps, reset_num_timesteps=False)
        return steps / (time.perf_counter() - start)

    return rate


def sb3_dqn() -> Callable[[int], float]:
    """SB3's DQN with the paper's layers."""
    return sb3(DQN)


def sb3_qrdqn() -> Callable[[int], float]:
    """SB3-contrib's QR-DQN with 200 quantiles."""
    return sb3(QRDQN, n_quantiles=200)


class UmnnPackageAgent:
    """UMDQN-C as one would build it on the `UMNN` package: one monotonic network an action."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.torso = torch.nn.Sequential(
            torch.nn.Linear(2, FEATURES), torch.nn.ReLU(), torch.nn.Linear(FEATURES, FEATURES)
        )
        self.heads = torch.nn.ModuleList(
            MonotonicNN(1 + FEATURES, [128], nb_steps=50) for _ in range(ACTIONS)
        )
        parameters = [*self.torso.parameters(), *self.heads.parameters()]
        self.optimiser = torch.optim.Adam(parameters, lr=1e-4, eps=1e-5)
        self.z = torch.linspace(-2, 2, POINTS)

    def cdf(self, features: torch.Tensor, z: torch.Tensor, action: int) -> torch.Tensor:
        """CDFs of one action at z [batch, points]."""
        repeated = features[:, None].expand(-1, z.shape[1], -1).reshape(-1, FEATURES)
        return torch.sigmoid(self.heads[action](z.reshape(-1, 1), repeated)).reshape(z.shape)

    def chosen(
        self, features: torch.Tensor, z: torch.Tensor, actions: torch.Tensor
    ) -> torch.Tensor:
        """CDFs of one action a sample."""
        values = torch.zeros_like(z)
        for action in range(ACTIONS):
            of_action = actions == action
            if of_action.any():
                values = values.index_put(
                    (of_action,), self.cdf(features[of_action], z[of_action], action)
                )
        return values

    def update(self, rng: np.random.Generator) -> None:
        """One update of a batch of 32, on random transitions."""
        observation, following = torch.tensor(rng.uniform(0, 6, (2, BATCH, 2)), dtype=torch.float32)
        actions = torch.tensor(rng.integers(0, ACTIONS, BATCH))
        rewards = torch.tensor(rng.normal(0, 0.1, (BATCH, 1)), dtype=torch.float32)
        z = self.z.expand(BATCH, -1)
        with torch.no_grad():
            features = self.torso(following)
            means = torch.stack(
                [2 - torch.trapezoid(self.cdf(features, z, a), z) for a in range(ACTIONS)], dim=1
            )
            target = self.chosen(features, (z - rewards) / DISCOUNT, means.argmax(1))
        prediction = self.chosen(self.torso(observation), z, actions)
        loss = ((target - prediction) ** 2).mean()
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.torso.parameters(), 1.0)
        self.optimiser.step()


def umnn_package() -> Callable[[int], float]:
    """Updates a second of the agent above."""
    agent, rng = UmnnPackageAgent(), np.random.default_rng(0)
    agent.update(rng)

    def rate(updates: int) -> float:
        start = time.perf_counter()
        for _ in range(updates):
            agent.update(rng)
        return updates / (time.perf_counter() - start)

    return rate
