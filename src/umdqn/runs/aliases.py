"""Other names of configuration fields: those that users of other libraries type."""

from __future__ import annotations

ALIASES: dict[str, str] = {
    "lr": "optimiser.learning_rate",
    "learning_rate": "optimiser.learning_rate",
    "max_grad_norm": "optimiser.clip",
    "gamma": "discount",
    "total_timesteps": "steps",
    "timesteps": "steps",
    "num_seeds": "seeds",
    "n_envs": "num_envs",
    "batch_size": "replay.batch_size",
    "buffer_size": "replay.capacity",
    "learning_starts": "replay.warmup",
    "n_step": "replay.n_step",
    "n_steps": "replay.n_step",
    "train_freq": "update_every",
    "train_frequency": "update_every",
    "target_update_interval": "target.every",
    "target_network_frequency": "target.every",
    "tau": "target.rate",
    "exploration_initial_eps": "exploration.start",
    "exploration_final_eps": "exploration.end",
    "start_e": "exploration.start",
    "end_e": "exploration.end",
    "normalize_observations": "normalise_observations",
    "eval_freq": "evaluation.every",
    "n_eval_episodes": "evaluation.episodes",
    "save_freq": "checkpoint_every",
    "n_atoms": "representation.atoms",
    "n_quantiles": "representation.quantiles",
}
"""Fields by the names that they have in Stable-Baselines3, CleanRL and Dopamine."""

ADVICE: dict[str, str] = {
    "exploration_fraction": "exploration.decay counts steps, not a share of the run",
    "gradient_steps": "there is one update every `update_every` steps",
    "net_arch": "torso.widths sets the layers, the embedding included",
    "policy_kwargs": "torso.widths sets the layers",
    "convolutions": "torso chooses them: auto, mlp, minatar or nature",
    "v_min": "domain Z_MIN Z_MAX sets both bounds",
    "v_max": "domain Z_MIN Z_MAX sets both bounds",
    "device": "JAX chooses; the environment variable JAX_PLATFORMS=cpu or cuda overrides it",
    "cuda": "JAX chooses; the environment variable JAX_PLATFORMS=cpu or cuda overrides it",
    "tensorboard_log": "use --log tensorboard",
    "track": "use --log wandb",
    "verbose": "progress is shown in terminals and notebooks, unless progress=False",
}
"""What to use instead of names that have no field of the same meaning here."""


def field_of(name: str) -> str:
    """Return the dotted name of the field that a user means by a name: the name itself if new."""
    return ALIASES.get(name.replace("-", "_"), name)


def advice_on(name: str) -> str | None:
    """Return what to use instead of a name from another library, if there is something to say."""
    return ADVICE.get(name.replace("-", "_"))
