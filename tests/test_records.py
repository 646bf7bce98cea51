"""What a run writes down on its way: lines of metrics, and old checkpoints."""

import pytest

from umdqn.errors import UmdqnError
from umdqn.runs.configure import configure
from umdqn.runs.records import Records
from umdqn.runs.run import load
from umdqn.runs.start import train_config
from witness import SMALL


def test_lines_that_are_no_metrics(tmp_path):
    records = Records(tmp_path)
    whole = '{"step": 1, "seed": 0, "return_mean": 2.0}\n'
    for line in ("5", '{"step": 1}', '{"step": 1, "seed": 0, "return_mean": "2"}', "\u2028", ""):
        records.path.write_text(f"{whole}{line}\n")
        with pytest.raises(UmdqnError, match=r"metrics\.jsonl is corrupt: line 2"):
            records.read()
    # Cut short by a crash.
    records.path.write_text(whole + '{"step": 2, "se')
    assert records.read() == [{"step": 1, "seed": 0, "return_mean": 2.0}]


def test_old_checkpoints_are_thinned_out_but_for_the_best(tmp_path):
    """Sixty-four at most; every second of the older half goes, again and again."""
    fields = SMALL | {"steps": 700, "checkpoint_every": 10, "chunk": 10, "evaluation.every": 50}
    run = train_config(configure("grid-world", "dqn", overrides=fields), tmp_path / "run")
    # When 0, 10, ..., 640 were older than the newest two: 65.
    scores = {r["step"]: r["return_mean"] for r in run.directory.read_metrics() if r["step"] <= 660}
    best = max(scores, key=lambda step: (scores[step], step))
    left = {*range(0, 660, 20), *range(650, 710, 10), best}
    assert run.directory.checkpoints.steps() == sorted(left)
    files = {path.name for path in (run.path / "checkpoints").iterdir()}
    assert len([name for name in files if name.endswith(".loop.safetensors")]) == 2
    assert len(files) == 2 * len(left) + 2
    assert load(run.path, best).step == best
