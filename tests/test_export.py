"""Exports: laws without JAX equal those of the run, for every agent; cards say what they should."""

import io
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quick import quick
from umdqn.agents.algorithms import ALGORITHMS
from umdqn.cli.main import main
from umdqn.errors import UmdqnError
from umdqn.export.exporting import export, model_bytes
from umdqn.export.portable import Model
from umdqn.runs.build import build_agent
from umdqn.runs.configure import configure
from umdqn.specs import EnvSpec, Observation

FRACTIONS = np.concatenate([[0.001, 0.05, 0.5], np.linspace(0.02, 0.98, 70), [0.999]])

# A few roundings of numbers between 0 and 1 in single precision.
_FINE = 1e-6


def perturbed(learned, random):
    """Learned parameters are not as regular as fresh ones."""
    return jax.tree.map(
        lambda x: x + 0.01 * random.standard_normal(x.shape).astype("float32") if x.ndim else x,
        learned,
    )


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        *quick(
            [(name, {}) for name in ALGORITHMS],
            [(name, {}) for name in ("umdqn-kl", "umdqn-w", "qr-dqn", "iqn")],
        ),
        ("umdqn-kl", {"domain": (-20.0, 10.0)}),
        ("cdqn", {"domain": (-20.0, 10.0)}),
    ],
)
def test_exported_laws_are_those_of_the_agent(name, domain):
    random = np.random.default_rng(0)
    agent = build_agent(configure("grid-world", name, overrides=domain)).refined()
    learned = perturbed(agent.fresh(jax.random.key(0)), random)
    seen = random.uniform(0, 7, (4, 2)).astype(np.float32)
    model = Model.load(io.BytesIO(model_bytes(agent, learned, {})))

    def views(observation):
        laws = agent.laws(learned, observation).settled()
        near = [laws.quantile(jnp.asarray(FRACTIONS + shift)) for shift in (0.0, -_FINE, _FINE)]
        return laws.mean, near, agent.greedy(learned, observation)

    means, (quantiles, below, above), actions = jax.jit(jax.vmap(views))(seen)
    # FQF proposes the fractions whose cosines, of up to 64 half waves, it embeds: that makes a
    # rounding of a fraction some 200 times larger.
    relative = 5e-5 if name == "fqf" else 1e-5
    unit = relative * max(1.0, float(np.abs(quantiles).max()))
    np.testing.assert_allclose(model.mean(seen), means, atol=unit)
    # Where a quantile function is steep, the rounding of a fraction moves it further.
    error = np.abs(model.quantiles(seen, FRACTIONS) - np.asarray(quantiles))
    assert (error <= unit + np.abs(np.asarray(above) - np.asarray(below))).all()
    assert np.median(error) < unit / 2
    assert model.quantiles(seen[0], 0.5).shape == (agent.spec.num_actions,)
    np.testing.assert_array_equal(model.act(seen), actions)


@pytest.mark.parametrize(
    ("observation", "fields"),
    [
        (Observation((10, 10, 4), "bool", (0.0,), (1.0,)), {}),
        (Observation((4, 84, 84), "uint8", (0.0,), (255.0,), 4), {"torso.widths": (16,)}),
    ],
)
def test_pictures_go_through_the_same_convolutions(observation, fields):
    random = np.random.default_rng(1)
    spec = EnvSpec("pictures", "minatar", 2, observation, 0.99, None, 100, ("a", "b"))
    config = configure("grid-world", "qr-dqn", overrides=fields | {"torso": "auto"})
    agent = build_agent(config, spec)
    learned = agent.fresh(jax.random.key(0))
    seen = random.integers(0, int(observation.high[0]) + 1, observation.shape)
    seen = seen.astype(observation.dtype)
    laws = agent.laws(learned, jnp.asarray(seen)).settled()
    model = Model.load(io.BytesIO(model_bytes(agent, learned, {})))
    np.testing.assert_allclose(model.mean(seen), laws.mean, atol=1e-5)


def test_a_run_is_exported_with_a_card_and_runs_without_jax(small_run, tmp_path, capsys):
    out = tmp_path / "model"
    assert main(["export", str(small_run.path), "--seed", "1", "--out", str(out)]) == 0
    state = [2.0, 6.0]
    laws = small_run.law(state, seed=1)
    program = (
        "import json, sys; from umdqn_portable import Model; model = Model.load('model.npz'); "
        f"q = model.quantiles({state}, [0.1, 0.9]); "
        "assert not {'jax', 'umdqn', 'equinox'} & set(sys.modules); "
        f"print(json.dumps([model.mean({state}).tolist(), q.tolist(), model.info]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=out, capture_output=True, text=True, check=True
    )
    means, quantiles, info = json.loads(done.stdout)
    np.testing.assert_allclose(means, laws.mean, atol=1e-5)
    np.testing.assert_allclose(quantiles, laws.quantile(np.array([0.1, 0.9])), atol=1e-5)
    assert (info["seed"], info["step"], info["actions"][0]) == (1, 3_000, "RIGHT")
    card = (out / "MODEL_CARD.md").read_text()
    last = small_run.directory.read_metrics()[-1]
    assert last["seed"] == 1
    assert f"| 3,000 | {last['return_mean']:.4g} | {last['return_std']:.4g} |" in card
    assert "| replay.warmup | 1000 |" in card
    assert "Not calibrated" in card
    with pytest.raises(UmdqnError, match="not empty, and an export never overwrites"):
        export(small_run, out)
    with pytest.raises(UmdqnError, match="seed = 7 is not allowed: one of 0, 1"):
        export(small_run, tmp_path / "other", 7)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda info: info | {"format": "other"}, "another format"),
        (lambda info: info | {"format_version": 99}, "another format or version"),
        (lambda info: [], "not an agent exported"),
    ],
)
def test_files_of_other_kinds_are_refused(change, message, tmp_path):
    agent = build_agent(configure("grid-world", "dqn"))
    data = model_bytes(agent, agent.fresh(jax.random.key(0)), {})
    with np.load(io.BytesIO(data)) as file:
        arrays = {name: file[name] for name in file.files}
    info = change(json.loads(bytes(arrays.pop("info"))))
    path = tmp_path / "model.npz"
    np.savez(path, info=np.frombuffer(json.dumps(info).encode(), np.uint8), **arrays)
    with pytest.raises(ValueError, match=message):
        Model.load(path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="not an agent exported"):
        Model.load(path)
