"""Files whose checksums are sound and whose content is nonsense: one line each, no traceback."""

import hashlib
import itertools
import json
import shutil

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as load_arrays

from damage import NONSENSE, places, refused, replaced, toml_file
from umdqn.envs.grid_world import SPEC
from umdqn.errors import Notice, UmdqnError
from umdqn.loops.host_arrays import check_seed
from umdqn.runs.configure import configure
from umdqn.runs.files import encode_arrays, read_sealed, write_json, write_sealed
from umdqn.runs.run import load
from umdqn.runs.schemas import Measured, WandbId, read_calibration, read_unsealed
from umdqn.runs.start import resume, train_config
from umdqn.studies.pages import claim
from umdqn.sweeps.driver import read_plan
from umdqn.sweeps.plan import Job, read_sweep
from umdqn.sweeps.results import collect_all
from umdqn.sweeps.work import Place, work
from witness import SMALL

FIELDS = SMALL | {"steps": 400, "evaluation.every": 300}
STEP = 400


def train(loop, folder):
    config = configure("grid-world", "dqn", overrides=FIELDS | {"loop": loop})
    return train_config(config, folder / loop)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train("compiled", tmp_path_factory.mktemp("runs"))


@pytest.fixture
def run(trained, tmp_path):
    """A copy of a run to fill with nonsense."""
    shutil.copytree(trained.path, tmp_path / "run")
    return load(tmp_path / "run")


def variants(data):
    """JSON data with each value replaced by every kind of nonsense in turn, and nonsense alone."""
    yield from ({}, {"a": []})
    for path in places(data):
        for value in (..., *NONSENSE):
            yield replaced(data, path, value)


def survey(path, data, read, write=write_sealed, every=1):
    """Count how often nonsense in a file is refused, and how often it was tried."""
    outcomes = []
    for variant in itertools.islice(variants(data), None, None, every):
        write(path, variant)
        outcomes.append(refused(read))
    write(path, data)
    assert not refused(read)
    return sum(outcomes), len(outcomes)


def test_manifests(run):
    path = run.path / "manifest.json"
    # Every seventh: fifteen kinds of nonsense for each value, so that each value gets others.
    no, tried = survey(path, read_sealed(path), run.directory.read_manifest, every=7)
    assert tried > 150
    assert no > tried / 2


def test_indices(run):
    path = run.path / f"checkpoints/{STEP:010d}.json"
    like = {0: jax.eval_shape(run.agent.init, jax.random.key(0))}

    def read():
        restored, trainer = run.directory.checkpoints.restore(STEP, like)
        for one in restored.values():
            list(one.rows)
        return trainer

    no, tried = survey(path, read_sealed(path), read, every=2)
    assert tried > 150
    assert no > tried / 2


def test_an_index_cannot_lead_out_of_its_run(run):
    path = run.path / f"checkpoints/{STEP:010d}.json"
    index = read_sealed(path)
    piece = index["replay"]["0"][0]
    outside = run.path.parent / "secret.safetensors"
    shutil.copy(run.path / piece["file"], outside)
    for name in ("../secret.safetensors", str(outside), "replay/../../secret.safetensors"):
        write_sealed(path, json.loads(json.dumps(index).replace(piece["file"], name)))
        with pytest.raises(
            UmdqnError, match=f"{path.name} is corrupt: expected `str` matching regex"
        ):
            run.directory.checkpoints.restore(STEP, {0: None})


def test_calibrations(run):
    path = run.path / "calibration.json"
    trust = {
        "verdict": "sound",
        "coverage_90": 0.9,
        "bias": 0,
        "crps_skill": None,
        "edge_mass": 0.01,
        "episodes": 10,
    }
    survey(path, {"steps": {"0": STEP}, "trust": trust}, lambda: read_calibration(path))
    write_sealed(path, {"steps": {"0": STEP}, "trust": trust | {"verdict": "\x1b[2J"}})
    with pytest.warns(Notice, match="ignoring a saved calibration: .*control characters"):
        assert load(run.path).trust is None


def test_plans_and_jobs(tmp_path):
    config = configure("grid-world", "dqn", overrides=FIELDS)
    job = Job.of({"env": "grid-world", "agent": "dqn", "discount": 0.5}, config)
    plan = {"format": "umdqn-sweep", "format_version": 3, "jobs": [job.to_json()]}
    no, tried = survey(tmp_path / "sweep.json", plan, lambda: read_plan(tmp_path), every=7)
    assert no > tried / 2
    (tmp_path / "jobs").mkdir()
    for variant in ({}, {**job.to_json(), "name": "../x"}, {**job.to_json(), "config": [1]}):
        write_sealed(Place(tmp_path).job(job.name), variant)
        outcome = work(tmp_path, job.name)
        assert outcome.status == "failed"
        assert "is corrupt" in outcome.reason


def test_results_of_studies_and_small_files(tmp_path):
    path = tmp_path / "result.json"
    config = {"env": "grid-world"}
    result = {
        "step": 1,
        "seconds": 1.5,
        "config": config,
        "seeds": {"0": {"w1": 0.1, "crps": None}},
    }
    survey(path, result, lambda: read_unsealed(path, Measured), write_json)
    survey(path, {"id": "0123456789abcdef"}, lambda: read_unsealed(path, WandbId), write_json)
    mark = tmp_path / "report" / "report.json"
    claim(mark.parent, "comparison")
    survey(mark, {"kind": "comparison"}, lambda: claim(mark.parent, "comparison"))


def test_metrics(run):
    path = run.path / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    record = json.loads(lines[0])
    outcomes = []
    for variant in variants(record):
        line = json.dumps(variant) + "\n"
        path.write_text(line)
        outcomes.append(refused(lambda: run.directory.records.read()))
    assert sum(outcomes) > len(outcomes) / 2
    for line in ('{"step": 1, "seed": 0, "return_mean": NaN}', "[]", '"x"', "1e999", "{" * 2_000):
        path.write_text(line + "\n")
        with pytest.raises(UmdqnError, match=r"metrics\.jsonl is corrupt: line 1"):
            run.directory.records.read()


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=200)
    | st.lists(
        st.sampled_from(["env", "agent", "step", "seed", "return_mean", "1", "-1", "nan", "1e400"])
        | st.just("9" * 5_000)
        | st.text("\"',\n\0=é", max_size=4),
        max_size=30,
    ).map(
        lambda words: "".join(
            f"{word},\n"[: 1 + len(word) + (i % 5 == 4)] for i, word in enumerate(words)
        ).encode("utf-8", "replace")
    )
)
def test_tables(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("tables") / "results.csv"
    path.write_bytes(b"env,agent,step,seed,return_mean\n" + data)
    refused(lambda: collect_all([path]))
    path.write_bytes(data)
    refused(lambda: collect_all([path]))


TOML = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.just("grid-world"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abc.", min_size=1), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["env", "agent", "preset", "seeds", "seeds_per_run", "axes", "fields", "x"]
        ),
        TOML,
    )
)
def test_sweep_files(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("sweeps") / "sweep.toml"
    path.write_text(toml_file(data))
    refused(lambda: read_sweep(path))


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b"a = " + b"[" * 5_000,
        b"a = " + b"9" * 5_000,
        b".".join([b"a"] * 3_000) + b" = 1",
        b"= 1",
    ],
)
def test_sweep_files_that_are_no_sweeps(tmp_path, content):
    path = tmp_path / "sweep.toml"
    path.write_bytes(content)
    with pytest.raises(UmdqnError, match=r"sweep\.toml"):
        read_sweep(path)


def rewritten(run, name, change):
    """Change the arrays of a file of the newest checkpoint, and seal it anew."""
    index_path = run.path / f"checkpoints/{STEP:010d}.json"
    index = read_sealed(index_path)
    data = encode_arrays(change(load_arrays((run.path / name).read_bytes())))
    (run.path / name).write_bytes(data)
    known = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    index["files"][name] = known
    for piece in index["replay"]["0"]:
        piece["sum"] = known if piece["file"] == name else piece["sum"]
    write_sealed(index_path, index)


CHANGES = {
    "lost": lambda array: None,
    "reshaped": lambda array: array.reshape(1, *array.shape),
    "of another type": lambda array: array.astype(np.float16),
    "negative": lambda array: (
        np.full_like(array, -1) if array.dtype.kind == "i" else array[..., None]
    ),
}


@pytest.fixture(scope="module", params=["compiled", "host"])
def either(request, trained, tmp_path_factory):
    if request.param == "compiled":
        return trained
    return train("host", tmp_path_factory.mktemp("hosted"))


@pytest.mark.parametrize("change", CHANGES)
def test_arrays_of_another_run(either, tmp_path, change):
    """Those of the loop and of the memory, sealed with sound checksums."""
    names = [f"checkpoints/{STEP:010d}.loop.safetensors"]
    names += [f"replay/{path.name}" for path in (either.path / "replay").iterdir()][-1:]
    for name in names:
        shutil.copytree(either.path, tmp_path / "run", dirs_exist_ok=True)
        path = tmp_path / "run"
        arrays = load_arrays((path / name).read_bytes())
        key = next(k for k in sorted(arrays) if k.endswith(("/step", "/counts", "/numbers")))

        def changed(arrays, key=key):
            new = CHANGES[change](arrays.pop(key))
            return arrays if new is None else arrays | {key: new}

        rewritten(load(path), name, changed)
        with pytest.raises(UmdqnError, match="corrupt"):
            resume(path, steps=450)


def test_saved_seeds_of_the_host_loop():
    spec = SPEC
    sound = {
        "counts": np.array([400, 400]),
        "actions": np.array([1]),
        "returns": np.array([0.5]),
        "random": np.zeros(6, np.uint64),
        "observation": np.zeros((1, *spec.observation.shape), spec.observation.dtype),
        "seed": np.array(7),
        "episodes": np.array([3]),
        "lengths": np.array([2]),
        "done": np.array([1, 3]),
    }
    check_seed(sound, 1, spec, "file")
    wrong = {
        "counts": [np.array([2**40, 2**40]), np.array([-1, 0]), np.zeros(2)],
        "actions": [np.array([spec.num_actions]), np.array([-1]), np.array([1, 1])],
        "returns": [np.array([1])],
        "random": [np.zeros(5, np.uint64)],
        "observation": [np.zeros((1, 99), np.float32)],
        "seed": [np.array(-1)],
        "episodes": [np.array([-2])],
        "lengths": [np.array([3]), np.array([-2]), np.array([200_000])],
        "done": [np.array([1, 99]), np.array([[1, 2]])],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(UmdqnError, match=r"^file is corrupt: "):
                check_seed(sound | {name: value}, 1, spec, "file")
        if name != "observation":
            with pytest.raises(UmdqnError, match=f"array '{name}' is missing"):
                check_seed({k: v for k, v in sound.items() if k != name}, 1, spec, "file")
