"""What Python users hold: runs that stop when asked, laws that show themselves, and records."""

import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import umdqn
from umdqn.errors import Notice, UmdqnError, nearest, notice
from umdqn.runs.aliases import ADVICE, ALIASES
from umdqn.runs.callbacks import Callbacks, StopTraining
from umdqn.runs.config import Config
from umdqn.runs.fields import field_types

SHORT = {
    "chunk": 100,
    "replay": {"warmup": 100, "capacity": 500},
    "evaluation": {"every": 200, "episodes": 2},
    "torso": {"widths": [8]},
}


class Until(umdqn.Callback):
    """Asks to stop at a step, by an answer or by an exception."""

    def __init__(self, step, by):
        self.step, self.by, self.told = step, by, []

    def on_chunk(self, report):
        self.told.append(report.step)
        if report.step < self.step:
            return True
        if self.by is StopTraining:
            raise StopTraining
        return self.by

    def on_end(self, status):
        self.told.append(status)


def test_a_callback_stops_a_run_that_is_saved_returned_and_resumed(tmp_path):
    first, second = Until(300, False), Until(10_000, False)
    run = umdqn.train(
        "grid-world", "dqn", steps=500, callbacks=[first, second], out=tmp_path / "run", **SHORT
    )
    assert (run.status, run.step) == ("stopped", 300)
    assert first.told == second.told == [100, 200, 300, "stopped"]
    assert umdqn.load(run.path).status == "stopped"
    raising = Until(400, StopTraining)
    run = umdqn.resume(run.path, callbacks=raising)
    assert (run.status, run.step, raising.told) == ("stopped", 400, [400, "stopped"])
    run = umdqn.resume(run.path)
    assert (run.status, run.step) == ("finished", 500)
    whole = umdqn.train("grid-world", "dqn", steps=500, out=tmp_path / "whole", **SHORT)
    assert run.evaluations == whole.evaluations
    assert jax.tree.all(jax.tree.map(np.array_equal, run.learned, whole.learned))


@pytest.mark.parametrize(
    ("answer", "stops"),
    [(False, True), (np.False_, True), (None, False), (0, False), (True, False), (np.True_, False)],
)
def test_only_a_false_stops(answer, stops):
    asked = Until(0, answer)
    assert Callbacks([asked]).on_evaluation(1, []) is True
    report = umdqn.runs.callbacks.Report(1, [], None)
    assert Callbacks([asked]).on_chunk(report) is not stops


@pytest.mark.parametrize("given", [3, "x", [3], Until, [Until]])
def test_what_is_no_callback_is_refused(given):
    with pytest.raises(UmdqnError, match=r"^callbacks = "):
        Callbacks.of(given)


def test_settings_can_be_nested_dotted_or_foreign():
    nested = umdqn.configure(
        "grid-world", "umdqn-w", overrides={"metric": {"name": "wasserstein", "kappa": 0.5}}
    )
    dotted = umdqn.configure("grid-world", "umdqn-w", overrides={"metric.kappa": 0.5})
    assert nested == dotted
    foreign = umdqn.configure("grid-world", "dqn", overrides={"lr": 0.5, "buffer-size": 77})
    assert (foreign.optimiser.learning_rate, foreign.replay.capacity) == (0.5, 77)
    with pytest.raises(UmdqnError, match=r"'lr' and 'optimiser.learning_rate' are the same field"):
        umdqn.configure(overrides={"lr": 1, "optimiser": {"learning_rate": 1}})
    with pytest.raises(UmdqnError, match=r"no field 'exploration_fraction': exploration.decay"):
        umdqn.configure(overrides={"exploration_fraction": 0.1})
    with pytest.raises(UmdqnError, match="'umdqn-w' is an agent"):
        umdqn.configure("umdqn-w")


def test_other_names_hide_no_field_and_lead_somewhere():
    fields = field_types(Config)
    for name, path in ALIASES.items():
        assert name not in fields
        assert path.partition(".")[0] in fields
    assert not set(ADVICE) & (set(fields) | set(ALIASES))


def test_nearest_names_are_few_and_begin_with_the_best():
    names = ["replay.batch_size", "replay.capacity", "metric.kappa", "steps", "MinAtar/Breakout"]
    assert nearest("batchsize", names) == ["replay.batch_size"]
    assert nearest("breakout", names) == ["MinAtar/Breakout"]
    assert nearest("stepps", names) == ["steps"]
    assert nearest("something else", names) == []


def test_laws_show_themselves(small_run):
    laws = small_run.law([2, 6])
    text = repr(laws)
    assert text.splitlines()[0] == "FlowLaw(4 laws, shape (4,))"
    numbers = np.array([line.split() for line in text.splitlines()[2:]], float)
    columns = [laws.mean, laws.std, *laws.quantile(np.array([0.05, 0.5, 0.95])).T]
    assert np.allclose(numbers[:, 1:], np.stack(columns, axis=1), rtol=1e-3)
    assert repr(laws[0]).startswith(f"FlowLaw(mean {float(laws[0].mean):.4g}, std ")
    page = laws._repr_html_()
    assert page.count("<polyline") == 4
    assert f"{float(laws.median[2]):.4g}" in page
    many = small_run.laws([[2, 6]] * 5)
    assert repr(many) == "FlowLaw(20 laws, shape (5, 4))"
    seen = []
    jax.jit(lambda scale: seen.append(repr(jax.tree.map(lambda leaf: leaf * scale, laws))))(1.0)
    assert seen == ["FlowLaw(...)"]


def test_laws_answer_with_seeds_and_refuse_impossible_shares(small_run):
    law = small_run.law([2, 6])[0]
    assert float(law.median) == float(law.quantile(0.5))
    assert np.array_equal(law.sample(3, 5), law.sample(jax.random.key(3), 5))
    for wrong in (0.0, -0.1, 1.1, float("nan")):
        with pytest.raises(UmdqnError, match=r"^alpha = .*: above 0, at most 1$"):
            law.cvar(wrong)
    for wrong in (-0.1, 1.1, np.array([0.5, np.nan]), [0.5, 2.0]):
        with pytest.raises(UmdqnError, match=r"^tau = .*: from 0 to 1$"):
            law.quantile(np.asarray(wrong))
    # Numbers of a program that is being compiled are not known, and are not looked at.
    assert np.allclose(jax.jit(lambda tau: law.quantile(tau))(0.3), law.quantile(0.3))


def test_laws_of_many_observations_come_in_pieces_of_one_size(small_run):
    observations = np.array([[x, y] for x in range(7) for y in range(7)])
    pieces = small_run.laws(observations, batch_size=20)
    whole = small_run.laws(observations)
    assert pieces.shape == whole.shape == (49, 4)
    assert np.allclose(pieces.mean, whole.mean, atol=1e-6)
    assert np.allclose(pieces[48].mean, small_run.law(observations[48]).mean, atol=1e-6)
    with pytest.raises(UmdqnError, match="batch_size = 0"):
        small_run.laws(observations, batch_size=0)


def test_laws_and_runs_draw_themselves_on_given_axes(small_run):
    laws, axes = small_run.law([2, 6]), Figure().subplots()
    assert laws.plot(axes) is axes
    lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    assert [line.get_label() for line in lines] == [f"action {number}" for number in range(4)]
    x, y = lines[1].get_data()
    assert np.allclose(y, laws[1].pdf(np.float32(x)), rtol=1e-4)
    x, y = laws[1].plot(Figure().subplots(), "quantile").lines[0].get_data()
    assert np.allclose(y, laws[1].quantile(np.float32(x)), rtol=1e-4)
    curve = small_run.plot(Figure().subplots()).lines[0]
    frame = small_run.records
    assert np.allclose(curve.get_ydata(), frame.groupby("step")["return_mean"].mean())
    with pytest.raises(UmdqnError, match="did you mean 'return_mean'"):
        small_run.plot(axes, "return_maen")


def test_plots_share_axes_only_with_the_same_numbers(small_run):
    pyplot.close("all")
    laws = small_run.law([2, 6])
    axes = laws[0].plot()
    assert laws[1].plot() is axes
    curve = small_run.plot()
    assert curve is not axes
    assert small_run.plot() is curve
    assert laws.plot(view="cdf") not in (axes, curve)
    pyplot.close("all")


def test_records_are_a_data_frame_where_pandas_is(small_run, monkeypatch):
    frame = small_run.records
    assert frame.shape[0] == len(small_run.evaluations) == 6
    assert frame.iloc[-1]["return_mean"] == small_run.evaluations[-1]["return_mean"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UmdqnError, match=r"needs an extra: .*\[pandas\]'"):
        _ = small_run.records


def test_notices_are_one_line_and_other_warnings_as_ever():
    code = (
        "import warnings; from umdqn.errors import notice\n"
        "notice('the lamp is on'); warnings.warn('usual')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert lines[0] == "note: the lamp is on"
    assert "UserWarning: usual" in lines[1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notice("again")
    assert [each.category for each in caught] == [Notice]
