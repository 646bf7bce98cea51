"""The one place where the parts of a configuration are put together."""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import numpy as np

from umdqn.agents.agent import Agent
from umdqn.agents.fixed import FixedPolicy
from umdqn.agents.policies import AbsentPolicy, AgentPolicy
from umdqn.agents.state import Learned
from umdqn.calibration.forecasts import Forecasts, forecast_program
from umdqn.calibration.hosted import forecast_hosted
from umdqn.envs.catalogue import find
from umdqn.envs.entry import Entry
from umdqn.envs.setup import Setup
from umdqn.errors import UmdqnError, check
from umdqn.loops import evaluation
from umdqn.loops.compiled import CompiledLoop
from umdqn.loops.compiled_training import CompiledTraining
from umdqn.loops.episodes import Returns
from umdqn.loops.footprint import Footprint, footprint, require
from umdqn.loops.host import HostLoop
from umdqn.loops.host_training import HostTraining
from umdqn.runs.checkpoints import Checkpoints
from umdqn.runs.config import Config
from umdqn.runs.manifests import read_manifest
from umdqn.runs.policy_names import check_chain, given_policy, runs_compiled
from umdqn.runs.predict import EVALUATION_STREAM
from umdqn.runs.run_name import RunName
from umdqn.specs import EnvSpec

# Copies of an environment that evaluation steps together.
_COPIES = 10
# Separates the randomness of calibration from that of training and evaluation.
_CALIBRATION_STREAM = 2**31 - 2


def environment(config: Config) -> Entry:
    """Return the environment of a configuration."""
    return find(config.env, Setup(config.env_kwargs, config.wrappers))


def is_compiled(config: Config) -> bool:
    """Return whether the environment runs inside of compiled programs."""
    entry = environment(config)
    possible = entry.compiled is not None and runs_compiled(config.policy, entry)
    return config.loop != "host" and possible


def trains_on_one_core(config: Config) -> bool:
    """Return whether training is fastest where no operation is shared among cores."""
    large = config.representation.large or config.metric.large
    return config.seeds == 1 and is_compiled(config) and not large


def check_loop(config: Config) -> None:
    """Raise if the environment cannot run in the configured loop."""
    compiled = is_compiled(config)
    possible = compiled or config.loop != "compiled"
    alone = environment(config).compiled is None
    what = config.env if alone else f"policy {config.policy!r}"
    check(possible, "loop", config.loop, f"{what} runs in Python only")
    single = not compiled or config.num_envs == 1
    check(single, "num_envs", config.num_envs, "more than 1 needs --loop host here")


def build_agent(config: Config, spec: EnvSpec | None = None) -> Agent:
    """Build the agent; if `spec` is given, the environment itself need not be installed."""
    return Agent(
        spec=environment(config).spec if spec is None else spec,
        domain=config.domain,
        support=config.support,
        representation=config.representation,
        metric=config.metric,
        decision=config.decision,
        torso=config.torso,
        optimiser=config.optimiser,
        target=config.target,
        exploration=config.exploration,
        double=config.double,
        updates=_updates(config) if config.optimiser.depends_on_length else 0,
        update_every=config.update_every,
        normalise=config.normalise_observations,
        policy=_policy(config, spec),
    )


def _policy(config: Config, spec: EnvSpec | None) -> FixedPolicy | None:
    """Return the policy to follow; only laws can be read without it, if `spec` is given."""
    if not config.policy:
        return None
    try:
        run = RunName.read(config.policy)
        if run is not None:
            check_chain(run)
            return _run_policy(run, environment(config).spec if spec is None else spec)
        return given_policy(config.policy, environment(config))
    except UmdqnError as error:
        if spec is None:
            raise
        return AbsentPolicy(str(error))


def _run_policy(run: RunName, spec: EnvSpec) -> FixedPolicy:
    """Return the policy of the first seed of a run."""
    config, trained, _ = read_manifest(run.path)
    for field in ("observation", "num_actions", "first_action"):
        found, needed = getattr(trained, field), getattr(spec, field)
        if found != needed:
            raise UmdqnError(
                f"policy {str(run)!r} was trained on {trained.name}, whose {field} is {found}: "
                f"that of {spec.name} is {needed}"
            )
    agent = build_agent(config, trained).refined()
    if agent.policy is not None:
        return agent.policy
    seed, checkpoints = config.all_seeds[0], Checkpoints(run.path)
    kept = checkpoints.steps()
    check(run.step in kept, "policy", str(run), f"checkpoints are at {kept}")
    like = {each: jax.eval_shape(agent.fresh, jax.random.key(0)) for each in config.all_seeds}
    learned = checkpoints.agents(run.step, like)[seed]
    contents = hashlib.sha256(b"".join(leaf.tobytes() for leaf in jax.tree.leaves(learned)))
    return AgentPolicy(agent, contents.hexdigest(), learned)


def _updates(config: Config) -> int:
    return max(config.steps - config.replay.warmup, 1) // config.update_every


def build_training(config: Config, agent: Agent | None = None) -> CompiledTraining | HostTraining:
    """Build the training of all seeds, with an agent that was built already or a new one."""
    loop = build_loop(config, agent)
    if isinstance(loop, CompiledLoop):
        return CompiledTraining(loop, config.all_seeds)
    return HostTraining(loop, config.all_seeds)


def build_loop(config: Config, agent: Agent | None = None) -> CompiledLoop | HostLoop:
    """Build the training loop of one seed."""
    entry = environment(config)
    shared: dict[str, Any] = {
        "agent": build_agent(config) if agent is None else agent,
        "replay": config.replay,
        "discount": config.discount,
        "update_every": config.update_every,
        "truncation_terminates": config.truncation_terminates,
    }
    if is_compiled(config):
        assert entry.compiled is not None
        return CompiledLoop(env=entry.compiled, **shared)
    return HostLoop(make=entry.hosted, copies=config.num_envs, **shared)


def memory_taken(config: Config, agent: Agent | None = None) -> Footprint:
    """Return how much memory training takes, without taking it."""
    return footprint(build_loop(config, agent), config.seeds)


def check_memory(config: Config, agent: Agent | None = None) -> None:
    """Raise if training takes more memory than there is."""
    require(memory_taken(config, agent))


def evaluate(
    config: Config, agent: Agent, learned: Learned, seed: int, step: int, episodes: int
) -> Returns:
    """Return the returns of one seed's policy; episodes depend on seed and step only."""
    entry, epsilon = environment(config), config.evaluation.epsilon
    if is_compiled(config):
        assert entry.compiled is not None
        stream = jax.random.fold_in(jax.random.key(seed), EVALUATION_STREAM)
        key = jax.random.fold_in(stream, step)
        learned = jax.device_get(learned)
        returns = evaluation.evaluate(
            agent, entry.compiled, config.discount, learned, key, episodes, epsilon
        )
        return jax.tree.map(np.asarray, returns)
    _check_same(entry.spec, agent.spec)
    env = entry.hosted(min(episodes, _COPIES))
    sequence = np.random.SeedSequence([seed, EVALUATION_STREAM, step])
    try:
        return evaluation.evaluate_hosted(
            agent,
            learned,
            env,
            config.discount,
            int(sequence.generate_state(1)[0]),
            episodes,
            epsilon,
            config.evaluation.limit if entry.spec.time_limit is None else None,
        )
    finally:
        env.close()


def forecast(config: Config, agent: Agent, learned: Learned, seed: int, episodes: int) -> Forecasts:
    """Return what one seed's laws said along episodes of its policy, and what was realised."""
    entry, completes = environment(config), not config.truncation_terminates
    if is_compiled(config):
        assert entry.compiled is not None
        key = jax.random.fold_in(jax.random.key(seed), _CALIBRATION_STREAM)
        play = forecast_program(agent, entry.compiled, config.discount, completes, episodes)
        return jax.tree.map(np.asarray, play(learned, key))
    _check_same(entry.spec, agent.spec)
    env = entry.hosted(1)
    words = np.random.SeedSequence([seed, _CALIBRATION_STREAM]).generate_state(1)
    try:
        return forecast_hosted(
            env,
            agent,
            learned,
            config.discount,
            completes,
            episodes,
            int(words[0]),
            config.evaluation.limit,
        )
    finally:
        env.close()


def _check_same(now: EnvSpec, then: EnvSpec) -> None:
    """Raise if the environment differs from the one that the agent was trained on."""
    for field in ("observation", "num_actions"):
        found, expected = getattr(now, field), getattr(then, field)
        if found != expected:
            raise UmdqnError(
                f"environment {then.name!r} has changed since training: {field} is {found}, was "
                f"{expected}"
            )
