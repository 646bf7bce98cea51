"""Exports: a directory with an agent's laws, a reader that needs NumPy only, and a model card."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped

from umdqn import __version__
from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.errors import UmdqnError, check
from umdqn.export.card import model_card
from umdqn.export.graphs import Graphs
from umdqn.export.portable.model import FORMAT, FORMAT_VERSION
from umdqn.runs.fields import to_dict
from umdqn.runs.files import write_bytes
from umdqn.runs.run import Run

MODEL, CARD, READER = "model.npz", "MODEL_CARD.md", "umdqn_portable"
_SOURCE = Path(__file__).parent / "portable"
# Quantiles that the operations compute at a time.
_FRACTIONS = 64


def export(run: Run, out: Path, seed: int | None = None) -> list[Path]:
    """Write the laws of one seed of a run, of the first unless told; return what was written."""
    seed = run.seeds[0] if seed is None else seed
    check(seed in run.learned, "seed", seed, f"one of {', '.join(map(str, run.seeds))}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UmdqnError(f"--out {out}: not empty, and an export never overwrites anything")
    # Before anything is written: some agents cannot be exported.
    model = _model(run, seed)
    try:
        (out / READER).mkdir(parents=True, exist_ok=True)
        for source in sorted(_SOURCE.glob("*.py")):
            write_bytes(out / READER / source.name, source.read_bytes())
        write_bytes(out / CARD, model_card(run, seed, MODEL, READER).encode())
        write_bytes(out / MODEL, model)
    except OSError as error:
        raise UmdqnError(f"--out {out}: cannot write: {error.strerror or error}") from error
    return [out / MODEL, out / CARD, out / READER]


def _model(run: Run, seed: int) -> bytes:
    """Return the bytes of the file that holds the laws of a seed."""
    about = {
        "umdqn": __version__,
        "env": run.config.env,
        "agent": run.config.label,
        "seed": seed,
        "step": run.steps[seed],
        "discount": run.config.discount,
    }
    return model_bytes(run.agent, run.learned[seed], about)


def model_bytes(agent: Agent, learned: Learned, about: dict[str, Any]) -> bytes:
    """Return operations and arrays of an agent's laws, in NumPy's format without pickles."""
    graphs, spec = Graphs(), agent.spec
    seen = jax.ShapeDtypeStruct(spec.observation.shape, spec.observation.dtype)
    fractions = jax.ShapeDtypeStruct((_FRACTIONS,), "float32")

    def summary(observation: Shaped[Array, "..."]) -> tuple[Array, Array]:
        return _summary(agent, learned, observation)

    def quantiles(observation: Shaped[Array, "..."], at: Array) -> Array:
        return agent.laws(learned, observation).settled().quantile(at)

    info: dict[str, Any] = about | {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "actions": list(spec.action_names),
        "first_action": spec.first_action,
        "observation": to_dict(spec.observation) | {"packed": spec.observation.is_packed},
        "fractions": _FRACTIONS,
        "graphs": {
            "summary": graphs.add(summary, seen),
            "quantiles": graphs.add(quantiles, seen, fractions),
        },
    }
    text = np.frombuffer(json.dumps(info).encode(), np.uint8)
    named: dict[str, Any] = {"info": text, **graphs.arrays}
    file = io.BytesIO()
    np.savez_compressed(file, **named)
    return file.getvalue()


def _summary(
    agent: Agent, learned: Learned, observation: Shaped[Array, "..."]
) -> tuple[Array, Array]:
    """Return means, as users see them, and what the greedy choice compares."""
    laws = agent.laws(learned, observation)
    return jnp.asarray(laws.settled().mean), agent.scores(laws)
