"""Parts from outside of the package: registered, named, passed as objects, and refused."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

import example_parts
import umdqn
from example_parts import EXAMPLES
from umdqn.cli.main import main
from umdqn.errors import UmdqnError
from umdqn.exploration.exploration import Exploration, Moment
from umdqn.parts.describe import describe
from umdqn.representations.representation import Representation
from umdqn.runs.files import read_sealed, write_sealed
from umdqn.runs.kinds import KINDS

TESTS = Path(__file__).parent
SHORT = {
    "steps": 300,
    "replay.warmup": 100,
    "replay.capacity": 500,
    "evaluation.every": 150,
    "evaluation.episodes": 5,
    "checkpoint_every": 150,
}
PATHS = [path for path in [os.environ.get("PYTHONPATH")] if path]
OWN_FIELDS = {
    "representation": ("scale", 0.2),
    "metric": ("spread", 0.75),
    "decision": ("caution", 0.5),
    "torso": ("width", 12),
    "optimiser": ("rate", 0.002),
    "replay": ("weight", 0.25),
    "exploration": ("period", 3),
    "target": ("interval", 40),
    "support": ("half_width", 3.0),
}


@pytest.fixture(scope="module", autouse=True)
def tables() -> Iterator[None]:
    """Register the examples, and restore all tables afterwards."""
    before = {kind: (dict(table._classes), dict(table._adopted)) for kind, table in KINDS.items()}
    for kind, (name, part) in EXAMPLES.items():
        umdqn.register(kind, name, part)
    yield
    for kind, table in KINDS.items():
        table._classes, table._adopted = before[kind]


def by_name() -> dict[str, Any]:
    names = {kind: name for kind, (name, _) in EXAMPLES.items()}
    return names | {f"{kind}.{field}": value for kind, (field, value) in OWN_FIELDS.items()}


def weights(run: umdqn.Run) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(run.learned[0])]


def in_new_process(*arguments: str, cwd: Path = TESTS) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *PATHS])},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> umdqn.Run:
    """A run whose nine parts are all examples."""
    out = tmp_path_factory.mktemp("parts") / "run"
    return umdqn.train("grid-world", out=out, **{**SHORT, **by_name()})


def test_an_example_of_every_kind() -> None:
    assert EXAMPLES.keys() == KINDS.keys() == OWN_FIELDS.keys()


def test_all_kinds_train_together_and_reach_the_manifest(trained: umdqn.Run) -> None:
    saved = json.loads((trained.path / "manifest.json").read_text())["config"]
    for kind, (name, part) in EXAMPLES.items():
        field, value = OWN_FIELDS[kind]
        assert saved[kind]["name"] == name
        assert saved[kind]["class"] == f"example_parts:{part.__name__}"
        assert saved[kind][field] == value == getattr(getattr(trained.config, kind), field)
    assert trained.config.label == "pair + moments"
    fresh = trained.agent.init(jax.random.split(jax.random.key(0), 4)[0]).params
    assert not all(map(np.array_equal, jax.tree.leaves(fresh), weights(trained)))


def test_the_parts_do_what_they_say(trained: umdqn.Run) -> None:
    laws = trained.law([2.0, 6.0])
    assert laws.quantile(np.array([0.25, 0.75])).shape == (4, 2)
    # Two atoms of equal weight at centre +- d have mean `centre` and standard deviation d.
    low, high = np.asarray(laws.quantile(np.array([0.25, 0.75]))).T
    np.testing.assert_allclose(laws.mean, (low + high) / 2, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(laws.std, (high - low) / 2, rtol=1e-3, atol=1e-6)
    scores = trained.agent.scores(laws)
    np.testing.assert_allclose(scores, laws.mean - 0.5 * laws.std, rtol=1e-5, atol=1e-6)
    assert trained.predict([2.0, 6.0])[0] == np.argmax(scores)
    # In the steps 0, 3, 6, 9 after the warm-up, actions are taken in turn: period = 3.
    key, seen = jax.random.key(5), np.array([2.0, 6.0], np.float32)
    learned, act = trained.learned[0], jax.jit(trained.agent.act)
    moments = [Moment(np.int32(step), np.int32(step)) for step in range(12)]
    acts = [int(act(learned, seen, moment, key)) for moment in moments]
    assert acts[::3] == [0, 1, 2, 3]
    assert {*acts[1::3], *acts[2::3]} == {int(np.argmax(scores))}


def test_load_gives_the_same_laws(trained: umdqn.Run) -> None:
    again = umdqn.load(trained.path)
    assert again.config == trained.config
    assert all(map(np.array_equal, weights(again), weights(trained)))


def test_resume_equals_a_longer_run(tmp_path: Path) -> None:
    overrides = {**SHORT, **by_name()}
    umdqn.train("grid-world", out=tmp_path / "run", **overrides)
    resumed = umdqn.resume(tmp_path / "run", 450)
    whole = umdqn.train("grid-world", out=tmp_path / "whole", **{**overrides, "steps": 450})
    assert resumed.step == whole.step == 450
    assert all(map(np.array_equal, weights(resumed), weights(whole)))


def test_the_host_loop_takes_the_same_parts(tmp_path: Path) -> None:
    run = umdqn.train("grid-world", out=tmp_path / "run", loop="host", **{**SHORT, **by_name()})
    records = run.directory.read_metrics()
    assert [record["step"] for record in records] == [150, 300]
    assert all(np.isfinite(record["loss_mean"]) for record in records)


def test_help_lists_registered_parts(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for kind, (name, part) in EXAMPLES.items():
        field = OWN_FIELDS[kind][0]
        assert f"{name} " in shown
        assert (part.__doc__ or "") in shown
        assert f"--{kind}.{field} " in shown
    assert "Steps from one exploring action to the next. (round- robin: default 4)" in shown


def test_the_command_line_takes_module_and_class(tmp_path: Path) -> None:
    fields = [text for name, value in SHORT.items() for text in (f"--{name}", str(value))]
    chosen = ["--exploration", "example_parts:RoundRobin", "--exploration.period", "7"]
    command = ["-m", "umdqn", "train", "grid-world", "qr-dqn", "--out", str(tmp_path / "run")]
    done = in_new_process(*command, *fields, *chosen)
    assert done.returncode == 0, done.stderr
    saved = json.loads((tmp_path / "run" / "manifest.json").read_text())["config"]["exploration"]
    path = "example_parts:RoundRobin"
    assert saved == {"name": path, "class": path, "period": 7}
    assert umdqn.load(tmp_path / "run").config.exploration == example_parts.RoundRobin(7)
    wrong = in_new_process(*command, *chosen[:-1], "0")
    assert wrong.stderr == "umdqn: exploration.period = 0 is not allowed: above 0\n"


def test_objects_in_place_of_parts(tmp_path: Path) -> None:
    adamw = optax.adamw(1e-3)
    run = umdqn.train(
        "grid-world",
        "qr-dqn",
        out=tmp_path / "run",
        optimiser=adamw,
        torso=example_parts.make_torso,
        **SHORT,
    )
    assert run.config.label == "qr-dqn"
    saved = json.loads((run.path / "manifest.json").read_text())["config"]
    assert saved["optimiser"]["name"] == saved["torso"]["name"] == "given"
    assert saved["optimiser"]["transformation"].startswith("object ")
    # What can be imported is named so that other processes find it.
    assert saved["torso"]["make"] == "example_parts:make_torso"
    # `make_torso` has 8 features; grid-world has 2 numbers.
    assert run.learned[0].params.torso.layer.weight.shape == (8, 2)
    again = umdqn.load(run.path)
    assert all(map(np.array_equal, weights(again), weights(run)))
    assert umdqn.resume(run.path, 350).step == 350
    # The same object is the same part, so that programs are shared.
    assert umdqn.configure(overrides={"optimiser": adamw}).optimiser == run.config.optimiser
    other = in_new_process("-m", "umdqn", "train", "--resume", str(run.path), "--steps", "400")
    assert other.returncode == 1
    assert other.stderr.count("\n") == 1
    assert "was an object of another process: put it in a module" in other.stderr
    # Another object of another process is not taken for it, and laws need no optimiser.
    code = f"""
import numpy as np, optax, umdqn
umdqn.configure(overrides={{"optimiser": optax.adamw(7.0)}})
print(np.asarray(umdqn.load({str(run.path)!r}).law([2, 6]).mean).tolist())
try:
    umdqn.resume({str(run.path)!r}, 400)
except umdqn.UmdqnError as error:
    print(error)
"""
    done = in_new_process("-c", code)
    assert done.returncode == 0, done.stderr
    means, refusal = done.stdout.splitlines()
    np.testing.assert_allclose(json.loads(means), umdqn.load(run.path).law([2, 6]).mean, rtol=1e-6)
    assert "was an object of another process" in refusal


def test_objects_of_modules_and_registered_ones(tmp_path: Path) -> None:
    command = ["-m", "umdqn", "train", "grid-world", "dqn", "--out", str(tmp_path / "run")]
    fields = [text for name, value in SHORT.items() for text in (f"--{name}", str(value))]
    chosen = ["--optimiser", "example_parts:sgd", "--torso", "example_parts:make_torso"]
    done = in_new_process(*command, *fields, *chosen)
    assert done.returncode == 0, done.stderr
    done = in_new_process("-m", "umdqn", "train", "--resume", str(tmp_path / "run"), "--steps=310")
    assert done.returncode == 0, done.stderr
    umdqn.register("optimiser", "lion", lion := optax.lion(1e-4))
    umdqn.register("optimiser", "lion", lion)
    run = umdqn.train("grid-world", "dqn", out=tmp_path / "lion", optimiser="lion", **SHORT)
    saved = json.loads((run.path / "manifest.json").read_text())["config"]["optimiser"]
    assert saved == {"name": "lion", "transformation": "lion"}
    assert umdqn.load(run.path).config == run.config
    with pytest.raises(UmdqnError, match="'lion' is registered already"):
        umdqn.register("optimiser", "lion", optax.lion(1e-3))


MISTAKES = """
import umdqn
from umdqn.networks.torsos import Mlp
from umdqn.optimisers.adam import Adam
from umdqn.replay.uniform import Uniform
from umdqn.targets.periodic import Periodic
import numpy as np
assert umdqn.configure(overrides={"torso": Mlp([16, 16])}).torso == Mlp((16, 16))
rate = umdqn.configure(overrides={"optimiser": Adam(np.float32(0.5))}).optimiser.learning_rate
assert type(rate) is float and rate == 0.5
for options in (
    {"agent": 3},
    {"agent": ["dqn"]},
    {"preset": None},
    {"evaluation": 3},
    {"callbacks": 3},
    {"torso": "given"},
    {"steps": 10**400},
    {"steps": {}},
    {"replay": lambda: Uniform(capacity=100.5)},
    {"target": lambda: Periodic(1.5)},
    {"optimiser": lambda: Adam(schedule="linear")},
    {"target": "faulty_parts:Breaks"},
    {"target": "faulty_parts:Named"},
    {"target": "faulty_parts:Listed"},
    {"decision": "faulty_parts:OneScore"},
    {"exploration": "faulty_parts:HalfAction"},
    {"target": "exits:A"},
):
    try:
        made = {k: v() if type(v) is type(lambda: 0) else v for k, v in options.items()}
        umdqn.train("grid-world", **made)
    except umdqn.UmdqnError as error:
        print(error)
"""


def test_mistakes_in_python_get_one_line(tmp_path: Path) -> None:
    """In a process of its own, where arguments are not checked by the tests' type checker."""
    (tmp_path / "exits.py").write_text("raise SystemExit(0)")
    done = in_new_process("-c", MISTAKES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "agent = 3 is not allowed: a name",
        "agent = ['dqn'] is not allowed: a name",
        "preset = None is not allowed: a name",
    ]
    assert lines[3].startswith("evaluation = 3 is not allowed: it has fields of its own: evalua")
    assert lines[4] == "callbacks = 3 is not allowed: a umdqn.Callback, or a list of them"
    assert lines[5].startswith("torso is missing: pass it in Python")
    assert lines[6].endswith("is not allowed: must be a whole number of a size below 1e308")
    assert lines[7:] == [
        "steps = {} is not allowed: must be a whole number",
        "capacity = 100.5 is not allowed: a whole number, at least 1",
        "every = 1.5 is not allowed: a whole number, at least 1",
        "optimiser.schedule = 'linear' is not allowed: one of constant, cosine",
        "target 'Breaks' cannot be made: RuntimeError: out of order",
        "target 'Named' cannot be used: no field may be called 'name'",
        "target.choices = {} is not allowed: plain data: numbers, text, or tuples of these",
        "decision 'faulty_parts:OneScore' must give one score per law, shape (4,), not ()",
        "exploration 'faulty_parts:HalfAction' must give one action, a whole number, not float32 "
        "of shape ()",
        "target 'exits:A': cannot import exits: SystemExit: 0",
    ]
    assert not (tmp_path / "runs").exists()


def test_a_name_that_means_another_class_now_is_not_taken(tmp_path: Path) -> None:
    """The manifest says which class it was, and where; if its file is gone, the error says so."""
    chosen = {"exploration": "round-robin", "exploration.period": 3}
    run = umdqn.train("grid-world", "dqn", out=tmp_path / "run", **{**SHORT, **chosen})
    manifest = run.path / "manifest.json"
    load = f"print(umdqn.load({str(run.path)!r}).config.exploration)"
    code = "import umdqn, faulty_parts\n{}\n" + load
    other = "umdqn.register('exploration', 'round-robin', faulty_parts.HalfAction)"
    done = in_new_process("-c", code.format(other))
    assert done.stdout == "RoundRobin(period=3)\n", done.stderr
    home, sound = Path(__file__).parent, read_sealed(manifest)
    assert sound["imports"] == {"example_parts:RoundRobin": str(home / "example_parts.py")}
    gone = {"example_parts:RoundRobin": str(tmp_path / "gone.py")}
    write_sealed(manifest, sound | {"imports": gone})
    done = subprocess.run(
        [sys.executable, "-m", "umdqn", "evaluate", str(run.path), "--trust"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "has a part that is not here: exploration 'round-robin'" in done.stderr
    assert done.stderr.count("\n") == 1


class NoAct(Exploration):
    pass


class Thawed(example_parts.RoundRobin):
    period = 5


class NoDefault:
    pass


@dataclasses.dataclass(frozen=True)
class Mute(Representation):
    def build(self, features: int, actions: int, key: Any) -> Any:
        return None


@dataclasses.dataclass(frozen=True)
class WithoutDefault(Exploration):
    period: int

    def act(self, key: Any, moment: Any, actions: int, scores: Any) -> Any:
        return moment.choice % actions


@pytest.mark.parametrize(
    ("kind", "name", "part", "message"),
    [
        (
            "exploration",
            "round-robin",
            WithoutDefault,
            "exploration 'round-robin' is registered already, as example_parts:RoundRobin",
        ),
        ("exploration", "no-act", NoAct, "exploration 'NoAct' cannot be used: it lacks act"),
        ("exploration", "thawed", Thawed, "'Thawed' cannot be used: it must be a frozen dataclass"),
        ("exploration", "bare", WithoutDefault, "field 'period' has no default"),
        ("representation", "mute", Mute, "it must declare `gives`, the views that can be trained"),
        ("exploration", "alien", NoDefault, "it must extend umdqn.exploration.exploration:Explora"),
        ("exploration", "Big Name", EXAMPLES["exploration"][1], "names are lower-case words"),
        ("exploration", "epsilon-greedy", EXAMPLES["exploration"][1], "is registered already"),
        (
            "explorer",
            "mine",
            EXAMPLES["exploration"][1],
            "unknown kind of part 'explorer': did you",
        ),
        ("metric", "mine", EXAMPLES["exploration"][1], "it must extend umdqn.metrics.metric:Metr"),
    ],
)
def test_what_cannot_be_registered(kind: str, name: str, part: type, message: str) -> None:
    with pytest.raises(UmdqnError) as error:
        umdqn.register(kind, name, part)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def not_a_module(observation: Any, key: Any) -> Any:
    return lambda seen: seen


class Square(eqx.Module):
    def __init__(self, observation: Any, key: Any):
        pass

    def __call__(self, observation: Any) -> Any:
        return observation[:, None] * observation


class Narrow(Square):
    def __call__(self, observation: Any) -> Any:
        return observation[:7] @ np.ones((7, 4), np.float32)


def breaks(observation: Any, key: Any) -> Any:
    raise RuntimeError("two\nlines")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"exploration": "round-robbin"}, "exploration 'round-robbin': did you mean 'round-robin'"),
        ({"exploration": "no_such_module:X"}, "cannot import no_such_module"),
        ({"exploration": "example_parts:RoundRobi"}, "did you mean 'RoundRobin'"),
        ({"exploration": "example_parts:Momentum"}, "it must extend umdqn.exploration"),
        ({"exploration": WithoutDefault(3)}, "field 'period' has no default"),
        ({"exploration": WithoutDefault}, "exploration 'WithoutDefault' cannot be used"),
        ({"exploration.perod": 3}, "unknown field of exploration 'epsilon-greedy' 'perod'"),
        (
            {"target.every": 5},
            "unknown field of target 'polyak' 'every': known: rate; target 'periodic' has it",
        ),
        (
            {"representation": "pair", "metric": "kl"},
            "metric 'kl' cannot train representation 'pair': pair goes with ",
        ),
        (
            {"representation": "expectation", "metric": "cramer"},
            "this cramer goes with ",
        ),
        ({"optimiser": 3}, "optimiser = 3 is not allowed: a name (adam, given, momentum"),
        ({"optimiser": "adm"}, "unknown optimiser 'adm': did you mean 'adam'"),
        ({"torso": "mpl"}, "unknown torso 'mpl': did you mean 'mlp'"),
        ({"torso": not_a_module}, "not a callable equinox.Module"),
        ({"torso": Square}, "torso must embed an observation as a vector, not as (2, 2)"),
        ({"torso": Narrow}, "torso cannot embed observations of 2 numbers: "),
        ({"torso": breaks}, "cannot be made: RuntimeError: two lines"),
    ],
)
def test_one_line_for_parts_that_do_not_fit(
    overrides: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UmdqnError) as error:
        umdqn.train("grid-world", out=tmp_path / "run", **{**SHORT, **overrides})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_part_of_a_function_has_help_too() -> None:
    @dataclasses.dataclass(frozen=True)
    class Local(example_parts.RoundRobin):
        """A rule inside of a function."""

    found = describe(Local)
    assert found.summary == "A rule inside of a function."
    assert [field.name for field in found.fields] == ["period"]


def test_pairs_that_go_together_are_listed() -> None:
    with pytest.raises(UmdqnError) as error:
        umdqn.configure(overrides={"representation": "pair", "metric": "kl"})
    first, second = str(error.value).split(": ", 1)[1].split("; ")
    assert {"mean", "wasserstein", "moments"} <= set(
        first.removeprefix("pair goes with ").split(", ")
    )
    served = set(second.removeprefix("this kl goes with ").split(", "))
    assert {"umnn-pdf", "categorical"} <= served
    assert "pair" not in served


def test_a_torso_that_does_not_fit_leaves_no_directory(tmp_path: Path) -> None:
    with pytest.raises(UmdqnError):
        umdqn.train("grid-world", out=tmp_path / "run", torso=Square, **SHORT)
    assert not (tmp_path / "run").exists()
