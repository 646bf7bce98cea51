"""The command line as a user meets it: output, JSON, one-line errors."""

import json

import jax.numpy as jnp
import pytest

import umdqn
from umdqn.cli.main import main
from umdqn.errors import Notice
from umdqn.runs.config import Config
from umdqn.runs.fields import from_dict, leaves, to_dict


def test_agents_and_envs_are_listed(capsys):
    assert main(["agents"]) == 0
    agents = capsys.readouterr().out
    assert [line.split()[:3] for line in agents.splitlines()[1:]] == [
        ["umdqn-kl", "umnn-pdf", "kl"],
        ["umdqn-c", "umnn-cdf", "cramer"],
        ["umdqn-w", "umnn-qf", "wasserstein"],
        ["dqn", "expectation", "mean"],
        ["cdqn", "categorical", "kl"],
        ["qr-dqn", "quantiles", "wasserstein"],
        ["nc-qr-dqn", "non-crossing-quantiles", "wasserstein"],
        ["iqn", "implicit-quantiles", "wasserstein"],
        ["fqf", "proposed-quantiles", "wasserstein"],
        ["mmdqn", "quantiles", "mmd"],
    ]
    assert main(["envs"]) == 0
    assert "grid-world" in capsys.readouterr().out


def test_help_names_every_field(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for field in (
        "--metric.kappa",
        "--metric.root",
        "--representation.hidden",
        "--domain",
        "--steps",
    ):
        assert field in text


def shown(arguments, capsys):
    """What a command prints that ends at once."""
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    return " ".join(capsys.readouterr().out.split())


def test_help_on_a_part_or_an_option_is_about_nothing_else(capsys):
    part = shown(["train", "--help", "replay"], capsys)
    assert part.startswith("replay: Replay memories")
    capacity = (
        "--replay.capacity, --buffer-size INT Transitions kept; the oldest are replaced first."
    )
    assert f"{capacity} (at least 1; default 10000)" in part
    assert "--metric" not in part
    option = shown(["train", "--help", "gamma"], capsys)
    assert option.startswith("option: --discount, --gamma FLOAT")
    assert option.endswith("(from 0 to below 1)")
    assert shown(["--help", "evaluate"], capsys) == shown(["evaluate", "--help"], capsys)


def test_options_of_other_libraries_reach_the_configuration_that_is_shown(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    given = ["--env", "CartPole-v1", "--agent", "umdqn-w", "--preset", "paper"]
    given += ["--lr", "0.5", "--total_timesteps", "1e4", "--gamma", "0.5", "--domain", "-1", "1"]
    assert main(["train", *given, "--show-config", "--json"]) == 0
    config = json.loads(capsys.readouterr().out)
    overrides = {"optimiser.learning_rate": 0.5, "steps": 10_000, "discount": 0.5}
    overrides["domain"] = [-1, 1]
    assert config == to_dict(umdqn.configure("CartPole-v1", "umdqn-w", "paper", overrides))
    assert main(["train", *given, "--show-config"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert ["env", "CartPole-v1", "argument"] in rows
    assert ["domain", "-1", "1", "option"] in rows
    assert ["optimiser.learning_rate", "0.5", "option"] in rows
    assert ["optimiser.epsilon", "1e-05", "default"] in rows
    assert ["metric", "wasserstein", "agent"] in rows
    assert ["replay.warmup", "10000", "preset"] in rows
    assert {path for path, *_ in rows} == {path for path, _, _ in leaves(from_dict(Config, config))}
    assert list(tmp_path.iterdir()) == []


def test_arguments_of_environments_are_shown(capsys):
    words = ["FrozenLake-v1", "dqn", "--env-kwargs", "is_slippery=false", "max_episode_steps=7"]
    assert main(["train", *words, "--normalize-observations", "true", "--show-config"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert ["env_kwargs.is_slippery", "false", "option"] in rows
    assert ["env_kwargs.max_episode_steps", "7", "option"] in rows
    assert ["normalise_observations", "true", "option"] in rows


def test_json_is_one_object_and_nothing_else(small_run, capsys):
    assert main(["evaluate", str(small_run.path), "--episodes", "20", "--json"]) == 0
    out = capsys.readouterr().out
    report = json.loads(out)
    assert out.count("\n") == 1
    assert {"return_mean", "return_std", "discounted_mean", "episodes", "seeds"} <= set(report)
    assert set(report["seeds"]) == {"0", "1"}
    assert main(["accuracy", str(small_run.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["w1"] > 0


def test_tables_have_a_line_a_seed(small_run, capsys):
    assert main(["accuracy", str(small_run.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["seed", "all", "0", "1"]


def test_laws_draws_a_picture(small_run, tmp_path, capsys):
    out = tmp_path / "figures" / "laws.png"
    assert main(["laws", str(small_run.path), "--state", "2,6", "--out", str(out)]) == 0
    assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    from matplotlib.image import imread

    picture = imread(out)
    # Blue, vermilion, green and purple lines of the four actions are there.
    for colour in ((0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167)):
        near = abs(picture[:, :, :3] * 255 - colour).max(axis=2) < 3
        assert near.sum() > 200


BAD = {
    "command": (["trane"], "did you mean 'train'?"),
    "environment": (["train", "grid-wrold"], "did you mean 'grid-world'?"),
    "environment without a version": (["train", "CartPole"], "did you mean 'CartPole-v1'?"),
    "agent": (["train", "grid-world", "umdqn-k"], "did you mean 'umdqn-kl'?"),
    "capitals": (["train", "grid-world", "DQN"], "did you mean 'dqn'?"),
    "nothing to compare": (["compare", "/nowhere", "--out", "x"], "there is no such file"),
    "preset": (["train", "--preset", "papr"], "did you mean 'paper'?"),
    "option": (["train", "--metric.kapa", "1"], "did you mean '--metric.kappa'?"),
    "representation": (["train", "--representation", "umnn-cfd"], "did you mean 'umnn-cdf'?"),
    "field of another metric": (["train", "--metric.kappa", "1"], "metric 'cramer'"),
    "domain": (["train", "--domain", "2", "-2"], "z_min must be below z_max"),
    "domain nan": (["train", "--domain", "nan", "2"], "domain"),
    "seeds": (["train", "--seeds", "0"], "seeds = 0"),
    "steps": (["train", "--steps", "-3"], "steps = -3"),
    "steps text": (["train", "--steps", "many"], "steps = 'many'"),
    "steps fraction": (["train", "--steps", "1.5"], "whole number"),
    "discount": (["train", "--discount", "1.0"], "discount = 1.0"),
    "kappa": (["train", "grid-world", "umdqn-w", "--metric.kappa", "-1"], "metric.kappa = -1.0"),
    "sampling": (["train", "--metric.sampling", "even"], "one of random, stratified, fixed"),
    "boolean": (["train", "--metric.root", "maybe"], "true or false"),
    "checkpoint": (["evaluate", "/nowhere", "--checkpoint", "bets"], "last, best or a step"),
    "run": (["evaluate", "/nowhere"], "there is no such directory"),
    "extra argument": (["train", "grid-world", "umdqn-c", "more"], "unexpected argument 'more'"),
    "option before the command": (["--verson"], "did you mean '--version'?"),
    "count beyond 32 bits": (["train", "--replay.capacity", "3e9"], "below 2^31"),
    "seed beyond 32 bits": (["train", "--seed", "1e20"], "seed"),
    "metric for quantiles": (
        ["train", "grid-world", "qr-dqn", "--metric", "kl"],
        "quantiles goes with cramer, wasserstein, mmd, mean; this kl goes with umnn-pdf",
    ),
    "representation alone": (
        ["train", "grid-world", "umdqn-kl", "--representation", "quantiles"],
        "metric 'kl' cannot train representation 'quantiles'",
    ),
    "reverse of masses": (
        ["train", "grid-world", "cdqn", "--metric.direction", "reverse"],
        "cannot train representation 'categorical'",
    ),
    "atoms": (["train", "grid-world", "cdqn", "--representation.atoms", "0"], "atoms = 0"),
    "quantiles": (
        ["train", "grid-world", "qr-dqn", "--representation.quantiles", "0"],
        "representation.quantiles = 0 is not allowed: at least 1",
    ),
    "fractions": (
        ["train", "grid-world", "iqn", "--representation.value_fractions", "0"],
        "value_fractions = 0",
    ),
    "bandwidths": (
        ["train", "grid-world", "mmdqn", "--metric.bandwidths", "1,-2"],
        "metric.bandwidths = (1.0, -2.0)",
    ),
    "study": (["study", "lows", "--out", "x"], "invalid choice: 'lows'"),
    "study steps": (["study", "laws", "--out", "x", "--steps", "0"], "steps = 0"),
    "section": (["study", "laws", "--out", "x", "--only", "kapa"], "did you mean 'kappa'?"),
    "nothing like it": (["train", "--zzz", "1"], "(umdqn train --help lists them)"),
    "option of another library": (["train", "--net-arch", "64"], "torso.widths sets the layers"),
    "environment left out": (["train", "umdqn-w"], "'umdqn-w' is an agent"),
    "environment twice": (["train", "grid-world", "--env", "Taxi-v4"], "env is given twice"),
    "help on nothing": (["train", "--help", "repaly"], "did you mean 'replay'?"),
    "shell": (["completion", "tcsh"], "invalid choice: 'tcsh'"),
    "no shell": (["completion"], "name a shell: bash, zsh, fish"),
    "json alone": (["train", "--json"], "--json goes with --show-config"),
    "explore": (["law-of", "a:b", "grid-world", "--explore", "2"], "explore = 2.0 is not allowed"),
    "missing state": (["laws", "/nowhere", "--out", "x.png"], "--state"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_get_one_line(case, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, expected = BAD[case]
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("umdqn: ")
    assert captured.err.count("\n") == 1
    assert expected in captured.err
    assert list(tmp_path.iterdir()) == []


def test_bad_states_episodes_and_formats(small_run, tmp_path, capsys):
    run = str(small_run.path)
    cases = {
        ("laws", run, "--state", "9,9", "--out", str(tmp_path / "x.png")): "not a state",
        (
            "laws",
            run,
            "--state",
            "2,6",
            "--out",
            str(tmp_path / "x.gifx"),
        ): "unknown picture format",
        ("evaluate", run, "--episodes", "0"): "episodes = 0",
        ("evaluate", run, "--episodes", "x"): "episodes = 'x'",
    }
    for arguments, expected in cases.items():
        assert main(list(arguments)) == 1
        assert expected in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_no_memory_is_one_line(monkeypatch, capsys):
    """XLA's own refusal of a petabyte."""
    monkeypatch.setattr(
        "umdqn.cli.listing.agents", lambda options: jnp.zeros(2**48).block_until_ready()
    )
    assert main(["agents"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("umdqn: out of memory: ")
    assert error.count("\n") == 1


def test_steps_that_learn_nothing_are_noticed_whoever_trains(tmp_path):
    with pytest.warns(Notice, match=r"500 random steps .* so that 20 steps learn nothing"):
        umdqn.train("grid-world", "dqn", steps=20, out=tmp_path / "run", **{"replay.warmup": 500})


def test_train_prints_the_run_directory_and_honours_overrides(tmp_path, capsys):
    out = tmp_path / "run"
    arguments = [
        "train",
        "grid-world",
        "umdqn-w",
        "--steps",
        "1100",
        "--replay.warmup",
        "1000",
        "--metric.kappa",
        "0.02",
    ]
    arguments += ["--domain", "-3", "3", "--representation.hidden", "16", "--out", str(out)]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.out.strip() == str(out)
    config = json.loads((out / "manifest.json").read_text())["config"]
    assert config["metric"]["kappa"] == 0.02
    assert config["domain"] == [-3.0, 3.0]
    assert config["representation"] == {
        "name": "umnn-qf",
        "hidden": [16],
        "intervals": 200,
        "point_scale": 60.0,
        "steepness": 0.25,
    }
    assert "return" in captured.err


def test_single_runs_are_compared_like_sweeps(small_run, tmp_path, capsys):
    run, out = str(small_run.path), tmp_path / "report"
    assert main(["compare", run, "--out", str(out)]) == 0
    assert "| grid-world | umdqn-c | tuned |" in (out / "report.md").read_text()
    assert main(["compare", run, run, "--out", str(out)]) == 1
    assert "both hold env grid-world, agent umdqn-c" in capsys.readouterr().err
