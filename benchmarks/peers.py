"""Peers to measure against: SB3's DQN and QR-DQN, and UMDQN-C on the `UMNN` package."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from sb3_contrib import QRDQN
from stable_baselines3 import DQN
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from UMNN import MonotonicNN

from umdqn.envs.catalogue import find
from umdqn.envs.minatar import MinAtar

BATCH, POINTS, FEATURES, ACTIONS, DISCOUNT = 32, 200, 128, 4, 0.5


class Settings(NamedTuple):
    """What an SB3 agent is trained with; ours are given the same."""

    policy: str = "MlpPolicy"
    policy_kwargs: Mapping[str, Any] = MappingProxyType({"net_arch": [128, 128]})
    discount: float = 0.99
    train_every: int = 1
    capacity: int = 10_000
    threads: int = 1
    """Threads of PyTorch: small networks run fastest on one."""


def sb3(
    kind: type, env: gymnasium.Env, settings: Settings, **policy: Any
) -> Callable[[int], float]:
    """Steps a second of an SB3 algorithm."""
    torch.set_num_threads(settings.threads)
    model = kind(
        settings.policy,
        env,
        learning_rate=1e-4,
        buffer_size=settings.capacity,
        learning_starts=100,
        batch_size=BATCH,
        gamma=settings.discount,
        train_freq=settings.train_every,
        gradient_steps=1,
        target_update_interval=1_000,
        exploration_initial_eps=0.05,
        exploration_final_eps=0.05,
        policy_kwargs={**settings.policy_kwargs, **policy},
        device="cpu",
        seed=0,
    )
    model.learn(300)

    def rate(steps: int) -> float:
        torch.set_num_threads(settings.threads)
        start = time.perf_counter()
        model.learn(steps, reset_num_timesteps=False)
        return steps / (time.perf_counter() - start)

    return rate


GRID_WORLD = Settings(discount=DISCOUNT)


def sb3_dqn(env: str = "umdqn/GridWorld-v0", settings: Settings = GRID_WORLD) -> Any:
    """SB3's DQN with the paper's layers."""
    return sb3(DQN, gymnasium.make(env), settings)


def sb3_qrdqn() -> Callable[[int], float]:
    """SB3-contrib's QR-DQN with 200 quantiles."""
    return sb3(QRDQN, gymnasium.make("umdqn/GridWorld-v0"), GRID_WORLD, n_quantiles=200)


class MinAtarFeatures(BaseFeaturesExtractor):
    """The paper's convolution and first layer for MinAtar."""

    def __init__(self, observation_space: gymnasium.spaces.Box):
        super().__init__(observation_space, features_dim=128)
        height, width, channels = observation_space.shape
        self.convolution = torch.nn.Conv2d(channels, 16, 3)
        self.linear = torch.nn.Linear(16 * (height - 2) * (width - 2), 128)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Features of a batch."""
        pictures = observations.permute(0, 3, 1, 2)
        return torch.relu(self.linear(torch.relu(self.convolution(pictures)).flatten(1)))


def sb3_qrdqn_minatar(game: str) -> Callable[[int], float]:
    """SB3-contrib's QR-DQN on MinAtar, an update every four steps."""
    network = {"features_extractor_class": MinAtarFeatures, "net_arch": [128]}
    settings = Settings(policy_kwargs=network, train_every=4)
    return sb3(QRDQN, MinAtar(game), settings, n_quantiles=200)


class Hosted(gymnasium.Env):
    """One of our hosted environments, as Gymnasium's."""

    def __init__(self, name: str):
        self.envs = find(name).hosted(1)
        seen = self.envs.spec.observation
        self.observation_space = gymnasium.spaces.Box(0, 255, seen.shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(self.envs.spec.num_actions)
        self._following: np.ndarray | None = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        """The episode that follows the last one, or the first."""
        if self._following is None:
            self._following = self.envs.reset(seed or 0)[0]
        return self._following, {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """One step of the only copy."""
        step = self.envs.step(np.array([action]))
        self._following = step.following[0]
        ends = bool(step.terminated[0]), bool(step.truncated[0])
        return step.observation[0], float(step.reward[0]), *ends, {}


def sb3_qrdqn_atari(name: str) -> Callable[[int], float]:
    """SB3-contrib's QR-DQN on Atari with the Nature CNN, an update every four steps."""
    cores = len(os.sched_getaffinity(0))
    network = MappingProxyType({"features_extractor_kwargs": {"features_dim": 128}})
    settings = Settings("CnnPolicy", network, 0.99, 4, 2_000, cores)
    return sb3(QRDQN, Hosted(name), settings, n_quantiles=200)


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
