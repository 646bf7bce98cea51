"""Environments with image observations: torsos, MinAtar, Atari, and watching."""

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from PIL import Image

import umdqn
from umdqn.cli.main import main
from umdqn.envs.atari import AtariEnvs
from umdqn.envs.catalogue import find
from umdqn.envs.minatar import GAMES, MinAtar
from umdqn.errors import Notice, UmdqnError
from umdqn.networks import torsos
from umdqn.runs.build import build_training
from umdqn.runs.start import train_config
from umdqn.specs import Observation

PONG = Observation((4, 84, 84), "uint8", (0.0,), (255.0,), 4)
BREAKOUT = Observation((10, 10, 4), "bool", (0.0,), (1.0,))
TINY = {
    "torso.widths": "8",
    "representation.hidden": "8",
    "metric.points": 10,
    "representation.intervals": 10,
    "replay.warmup": 40,
    "replay.capacity": 200,
    "evaluation.episodes": 2,
}


@pytest.mark.parametrize("observation", [PONG, BREAKOUT], ids=["nature", "minatar"])
def test_convolutions_are_those_of_jax(observation):
    torso = torsos.Auto((16,)).build(observation, jax.random.key(0))
    random = np.random.default_rng(0)
    raw = random.integers(0, 256 if observation.dtype == "uint8" else 2, observation.shape)
    picture = jnp.asarray(raw.astype(observation.dtype))
    x = picture.astype(jnp.float32) / observation.high[0]
    x = jnp.moveaxis(x, 0, -1) if torso.front.channels_first else x
    for layer in torso.front.convolutions:
        # Our patches count blocks of a stride first, then the pixels of a block.
        step = layer.stride if layer.size % layer.stride == 0 else 1
        blocks, channels = layer.size // step, x.shape[-1]
        kernel = layer.weight.T.reshape(blocks, blocks, step, step, channels, -1)
        kernel = kernel.transpose(0, 2, 1, 3, 4, 5).reshape(layer.size, layer.size, channels, -1)
        x = jax.lax.conv_general_dilated(
            x[None],
            kernel,
            (layer.stride,) * 2,
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )[0]
        x = jax.nn.relu(x + layer.bias)
    np.testing.assert_allclose(torso(picture), torso.mlp(x.reshape(-1)), rtol=1e-4, atol=1e-4)


def test_networks_are_chosen_from_the_observation():
    auto = torsos.Auto((8,))

    def filters(observation):
        built = eqx.filter_eval_shape(auto.build, observation, jax.random.key(0))
        return [layer.bias.shape[0] for layer in getattr(built.front, "convolutions", ())]

    assert filters(PONG) == filters(Observation((96, 96, 3), "uint8")) == [32, 64, 64]
    assert filters(BREAKOUT) == [16]
    assert filters(Observation((3, 2, 2))) == filters(Observation((8,))) == []
    with pytest.raises(UmdqnError, match="torso = 'nature' is not allowed: pictures of three axes"):
        torsos.Nature((8,)).build(BREAKOUT, jax.random.key(0))


def test_entries_are_scaled_where_bounds_are_narrow():
    """Wide bounds of measured quantities are seldom reached; those of counts are."""
    torso = torsos.Mlp((4,)).build(find("CartPole-v1").spec.observation, jax.random.key(0))
    seen = jnp.array([4.8, 3.0, -0.41887902, -2.0])
    np.testing.assert_allclose(torso.front(seen), [4.8, 3.0, -1.0, -2.0], rtol=1e-5)
    counts = Observation((2,), "int32", (0.0, 0.0), (1_000.0, 4.0))
    torso = torsos.Mlp((4,)).build(counts, jax.random.key(0))
    np.testing.assert_allclose(torso.front(jnp.array([1_000, 1])), [1.0, -0.5])


@pytest.mark.parametrize("game", GAMES)
def test_minatar_games_are_the_packages(game):
    from minatar import Environment

    env, referee = MinAtar(game), Environment(GAMES[game])
    check_env(MinAtar(game), skip_render_check=True)
    observation, _ = env.reset(seed=5)
    referee.seed(5)
    referee.reset()
    random, names = np.random.default_rng(0), env.action_names
    assert referee.sticky_action_prob == 0.1
    for _ in range(1_000):
        np.testing.assert_array_equal(observation, referee.state())
        action = int(random.integers(len(names)))
        expected = referee.act(referee.minimal_action_set()[action])
        observation, *rest, _ = env.step(action)
        assert tuple(rest) == (*expected, False)
        if expected[1]:
            observation, _ = env.reset()
            referee.reset()
            referee.last_action = 0


def test_atari_has_the_papers_wrappers():
    entry = find("ALE/Pong")
    assert entry.spec.observation == PONG
    assert entry.spec.reward_clip == 1.0
    envs, same, other = (entry.hosted(1) for _ in range(3))
    first = envs.reset(3)
    np.testing.assert_array_equal(first, same.reset(3))
    other.reset(4)
    differs, ended = False, 0
    before = first
    for count in range(1_000):
        action = np.array([count % 6])
        step = envs.step(action)
        np.testing.assert_array_equal(step.observation, same.step(action).observation)
        differs |= not np.array_equal(step.observation, other.step(action).observation)
        # Stacks of four: three frames stay, whatever begins afterwards.
        np.testing.assert_array_equal(step.observation[0, :3], before[0, 1:])
        done = step.terminated[0] or step.truncated[0]
        if done:
            ended += 1
            assert not np.array_equal(step.observation, step.following)
        before = step.following
    # Nothing but sticky actions and the first NOOPs is random in Pong.
    assert differs
    assert ended >= 1


def test_atari_scores_raw_rewards_and_learns_from_clipped_ones(monkeypatch):
    step = AtariEnvs.step
    monkeypatch.setattr(
        AtariEnvs, "step", lambda env, a: step(env, a)._replace(reward=np.array([7.0]))
    )
    config = umdqn.configure("ALE/Breakout", overrides=TINY | {"domain": (-1, 10)})
    training = build_training(config)
    progress = training.advance(300)[0]
    [snapshot] = training.snapshots()
    pieces = snapshot.pieces([0] * len(snapshot.entered))
    stored = {
        reward
        for _, rows in pieces
        for name, column in rows.items()
        if name.endswith("/numbers")
        for reward in column[:, 1].tolist()
    }
    training.close()
    # The first frames of an episode have rows of their own, without a reward.
    assert stored <= {0.0, 1.0}
    assert 1.0 in stored
    assert int(progress.episodes) > 0
    assert float(progress.returns) >= 7
    assert float(progress.returns) % 7 == 0


@pytest.fixture(scope="module")
def breakout(tmp_path_factory):
    config = umdqn.configure("MinAtar/Breakout", overrides=TINY | {"steps": 80})
    return train_config(config, tmp_path_factory.mktemp("runs") / "breakout")


def test_an_episode_is_written_as_an_animation(breakout, tmp_path, capsys):
    out = tmp_path / "episode.gif"
    assert main(["watch", str(breakout.path), "--out", str(out), "--steps", "12"]) == 0
    assert "episode.gif" in capsys.readouterr().out
    with Image.open(out) as animation:
        assert animation.format == "GIF"
        assert animation.n_frames >= 3
        assert animation.size == (720, 320)
    assert list(tmp_path.iterdir()) == [out]


def test_watching_says_what_it_cannot_write(breakout, tmp_path, capsys):
    assert main(["watch", str(breakout.path), "--out", str(tmp_path / "a.mp3")]) == 1
    assert "unknown animation format '.mp3'; known: .gif, .webp" in capsys.readouterr().err
    assert main(["laws", str(breakout.path), "--state", "1", "--out", "a.png"]) == 1
    assert "observes pictures" in capsys.readouterr().err


def test_any_gymnasium_environment_trains(tmp_path):
    path = tmp_path / "run"
    command = ["train", "gymnasium.envs.classic_control:CartPoleEnv", "dqn", "--steps", "120"]
    small = ["--torso.widths", "8", "--replay.warmup", "40", "--evaluation.episodes", "2"]
    limited = ["--evaluation.limit", "50", "--num_envs", "2", "--out", str(path)]
    with pytest.warns(Notice, match=r"are taken to lie in \[-10, 110\]"):
        assert main([*command, *small, *limited, "--support", "fixed"]) == 0
    assert umdqn.load(path).predict(np.zeros((3, 4), np.float32))[0].shape == (3,)


def test_stable_baselines_evaluates_a_run(tmp_path):
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    fields = {"steps": 60, "torso.widths": "8", "replay.warmup": 40, "evaluation.episodes": 2}
    run = train_config(umdqn.configure("CartPole-v1", "dqn", overrides=fields), tmp_path / "run")
    mean, _ = evaluation.evaluate_policy(run, gymnasium.make("CartPole-v1"), n_eval_episodes=3)
    assert 8 <= mean <= 500


@pytest.mark.parametrize(
    ("shape", "first"),
    [((7, 7, 16), False), ((3, 40, 40), True), ((4, 84, 84), True), ((96, 64, 3), False)],
)
def test_channels_are_the_odd_axis_out_or_the_shorter_end(shape, first):
    torso = torsos.Auto((4,)).build(Observation(shape), jax.random.key(0))
    assert torso.front.channels_first == first


def test_tables_of_numbers_with_bounds_of_their_own_are_scaled():
    low, high = tuple(map(float, range(6))), tuple(map(float, range(2, 8)))
    observation = Observation((2, 3), "float32", low, high)
    torso = torsos.Auto((4,)).build(observation, jax.random.key(0))
    seen = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(torso.front(seen), -np.ones(6))
    assert torso(seen).shape == (4,)
    with pytest.raises(UmdqnError, match=r"pictures of three axes .* not 2 x 3 float32"):
        torsos.Nature((4,)).build(Observation((2, 3)), jax.random.key(0))


@pytest.mark.parametrize("name", ["ALE/UpNDown", "ALE/upndown-v5"])
def test_every_way_to_write_a_game_is_understood(name):
    assert find(name).spec.name == "ALE/UpNDown"
    assert find("ALE/pong").spec.domain == find("ALE/Pong").spec.domain
