"""Files that hold nonsense, many times over: each is refused in one line, or read."""

import json

import jax
import numpy as np
import pytest

from damage import mutate, nonsense, refused, toml_file
from umdqn.runs.configure import configure
from umdqn.runs.directory import RunDirectory
from umdqn.runs.files import read_sealed, write_csv, write_sealed
from umdqn.runs.schemas import read_calibration
from umdqn.runs.start import train_config
from umdqn.sweeps.driver import read_plan
from umdqn.sweeps.plan import Job, read_sweep
from umdqn.sweeps.results import collect_all
from witness import SMALL

FIELDS = SMALL | {"steps": 400, "evaluation.every": 200}
SWEEP = {
    "env": ["grid-world", "FrozenLake-v1"],
    "agent": "dqn",
    "preset": "tuned",
    "seeds": 2,
    "seeds_per_run": 1,
    "axes": {"discount": [0.5, 0.9], "replay.n_step": [1, 3]},
    "fields": {"steps": 100, "torso.widths": [8, 8], "optimiser.schedule": "constant"},
}
TRUST = {"verdict": "sound", "coverage_90": 0.9, "bias": 0, "crps_skill": None}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = configure("grid-world", "dqn", overrides=FIELDS)
    return train_config(config, tmp_path_factory.mktemp("runs") / "run")


def sealed(path, data):
    write_sealed(path, data if isinstance(data, dict) else {"a": data})


def files_of(run, folder):
    """Path, sound data, how data is written, and what reads it, by the kind of file."""
    like = {0: jax.eval_shape(run.agent.init, jax.random.key(0))}
    directory = RunDirectory(run.path)
    index = run.path / f"checkpoints/{run.step:010d}.json"

    def restored():
        for one in directory.checkpoints.restore(run.step, like)[0].values():
            list(one.rows)

    job = Job.of({"env": "grid-world", "agent": "dqn", "discount": 0.5}, run.config).to_json()
    plan = {"format": "umdqn-sweep", "format_version": 3, "jobs": [job]}
    trust = TRUST | {"edge_mass": 0.01, "episodes": 10}
    table = [{"env": "a", "agent": "=b"} | record for record in run.evaluations]
    calibration = folder / "calibration.json"
    sweep, results = folder / "sweep.toml", folder / "results.csv"

    def write_toml(path, data):
        path.write_text(toml_file(data), errors="replace")

    def write_table(path, data):
        write_csv(path, [row for row in data if isinstance(row, dict)])

    def json_of(path):
        return read_sealed(path)

    manifest = run.path / "manifest.json"
    return {
        "manifest": (manifest, json_of(manifest), sealed, directory.read_manifest),
        "index": (index, json_of(index), sealed, restored),
        "plan": (folder / "sweep.json", plan, sealed, lambda: read_plan(folder)),
        "sweep in TOML": (sweep, SWEEP, write_toml, lambda: read_sweep(sweep)),
        "table of results": (results, table, write_table, lambda: collect_all([results])),
        "calibration": (
            calibration,
            {"steps": {"0": 400}, "trust": trust},
            sealed,
            lambda: read_calibration(calibration),
        ),
    }


def assault(run, folder, attack, each):
    """Nonsense in sound files, and damage to their bytes, by turns."""
    random = np.random.default_rng(0)
    counts = dict.fromkeys(files := files_of(run, folder), 0)
    for kind, (path, data, write, read) in files.items():
        write(path, data)
        read()
        sound = path.read_bytes()
        for number in range(each):
            if number % 2:
                path.write_bytes(mutate(sound, random, json.dumps(data).encode()))
            else:
                write(path, nonsense(data, random))
            with attack.trial(60):
                counts[kind] += refused(read)
        path.write_bytes(sound)
        read()
    return counts


@pytest.mark.filterwarnings("ignore")
def test_nonsense_is_refused_or_read(run, tmp_path, attack):
    counts = assault(run, tmp_path, attack("files of nonsense"), 40)
    assert all(count >= 10 for count in counts.values()), counts


@pytest.mark.torture
@pytest.mark.filterwarnings("ignore")
def test_twelve_thousand_files_of_nonsense(run, tmp_path, attack):
    counts = assault(run, tmp_path, attack("files of nonsense"), 2_000)
    assert all(count >= 500 for count in counts.values()), counts
