"""Model cards: what an exported agent is, how it scores, and how far to trust its laws."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from umdqn import __version__
from umdqn.errors import UmdqnError
from umdqn.runs.fields import leaves
from umdqn.runs.run import Run

_CALIBRATE = "Not calibrated: `umdqn calibrate RUN --save` compares laws with realised returns."
_MOST_ROWS = 20


def model_card(run: Run, seed: int, model: str, reader: str) -> str:
    """Return the card of one seed as Markdown."""
    config = run.config
    sections = [
        f"# {_text(config.label)} on {_text(config.env)}",
        "A distributional reinforcement learning agent: for an observation and an action it gives "
        "the law of the discounted return, and it takes the action whose law scores best.",
        _table(
            ("", ""),
            [
                ("agent", config.label),
                ("environment", config.env),
                ("seed", seed),
                ("trained", f"{run.steps[seed]:,} of {config.steps:,} environment steps"),
                ("discount", f"{config.discount:g}"),
                ("observation", str(run.spec.observation)),
                ("actions", ", ".join(run.spec.action_names)),
                ("rewards", _rewards(run)),
                ("made with", f"umdqn {__version__}"),
            ],
        ),
        "## Use",
        _usage(run, model, reader),
        "## Scores",
        _scores(run, seed),
        "## Are the laws true?",
        _calibration(run),
        "## Limits",
        "Laws are of the discounted sum of rewards when the policy is followed from the "
        "observation on. They hold for the environment above and its settings below; nothing is "
        "known of others, and observations unlike those of training get laws without meaning.",
        "## Settings",
        _table(("field", "value"), [(path, value) for path, _, value in leaves(config)]),
    ]
    return "\n\n".join(sections) + "\n"


def _usage(run: Run, model: str, reader: str) -> str:
    act = "" if run.config.policy else "\nmodel.act(observation)  # the greedy action"
    note = (
        f"\n\nThe run followed the policy `{_text(run.config.policy)}`, which is not in the file: "
        "`mean` and `quantiles` are of taking an action first and following the policy then."
        if run.config.policy
        else ""
    )
    return (
        f"Needs NumPy; `{reader}` is beside this file.\n\n```python\n"
        f"from {reader} import Model\n\n"
        f'model = Model.load("{model}")\n'
        "model.mean(observation)  # mean returns of all actions\n"
        "model.quantiles(observation, [0.05, 0.5, 0.95])  # [actions, fractions]"
        f"{act}\n```{note}"
    )


def _rewards(run: Run) -> str:
    clip = run.spec.reward_clip
    return "as the environment gives them" if clip is None else f"clipped to [-{clip:g}, {clip:g}]"


def _scores(run: Run, seed: int) -> str:
    """Return the evaluations of a seed during training, the last ones."""
    try:
        records = [each for each in run.directory.read_metrics() if each["seed"] == seed]
    except UmdqnError as error:
        return f"Evaluations cannot be read: {_text(error)}"
    if not records:
        return "Never evaluated."
    rows = [
        (f"{each['step']:,}", f"{each['return_mean']:.4g}", f"{each['return_std']:.4g}")
        for each in records[-_MOST_ROWS:]
    ]
    episodes = run.config.evaluation.episodes
    shown = (
        f"The last {len(rows)} of {len(records)} evaluations"
        if len(records) > len(rows)
        else ("Evaluations")
    )
    return (
        f"{shown} during training, {episodes} episodes each with "
        f"{run.config.evaluation.epsilon:g} random actions; sums of undiscounted rewards.\n\n"
        + _table(("step", "mean return", "standard deviation"), rows)
    )


def _calibration(run: Run) -> str:
    trust = run.trust
    if trust is None:
        return _CALIBRATE
    skill = "-" if trust.crps_skill is None else f"{trust.crps_skill:.3f}"
    edges = "-" if trust.edge_mass is None else f"{trust.edge_mass:.3g}"
    rows = [
        ("realised returns inside of central 90% intervals", f"{trust.coverage_90:.1%}"),
        ("bias: realised minus predicted mean", f"{trust.bias:.4g}"),
        ("CRPS skill over one law for all states", skill),
        ("mass at the edges of the support", edges),
        ("episodes", trust.episodes),
    ]
    return f"{_text(trust.verdict)} (all seeds)\n\n" + _table(("", ""), rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *([_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(value: Any) -> str:
    """Return a value as text that Markdown shows as it is, on one line."""
    plain = value if isinstance(value, str) else _written(value)
    shown = "".join(c if c.isprintable() else " " for c in plain)
    for mark in "\\`*_|<>[]":
        shown = shown.replace(mark, f"\\{mark}")
    return shown


def _written(value: Any) -> str:
    try:
        return json.dumps(value)
    except TypeError:
        return str(value)
