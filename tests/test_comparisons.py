"""Comparisons of what sweeps have written down."""

from umdqn.cli.main import main


def test_a_table_of_several_sweeps_says_the_same_as_they_do(tmp_path):
    """Also where one has an axis that the other does not have."""
    (tmp_path / "one.csv").write_text("env,agent,step,seed,return_mean\na,x,1,0,1.0\n")
    lines = "env,agent,kappa,step,seed,return_mean\na,x,0.1,1,0,2.0\na,x,1.0,1,0,3.0\n"
    (tmp_path / "two.csv").write_text(lines)
    both, again = tmp_path / "both", tmp_path / "again"
    paths = [str(tmp_path / name) for name in ("one.csv", "two.csv")]
    assert main(["compare", *paths, "--out", str(both)]) == 0
    assert main(["compare", str(both / "results.csv"), "--out", str(again)]) == 0
    tables = [(out / "tables.json").read_text() for out in (both, again)]
    assert tables[0] == tables[1]
    assert '"algorithm": "x kappa=0.1"' in tables[0]


def test_some_of_what_was_trained_are_compared(tmp_path, capsys):
    lines = ["env,agent,step,seed,return_mean"]
    lines += [f"{env},{agent},1,0,{len(agent)}" for env in "ab" for agent in ("x", "xx", "xxx")]
    table, out = tmp_path / "all.csv", str(tmp_path / "some")
    table.write_text("\n".join(lines) + "\n")
    some = ["--env", "b", "--agent", "x", "xxx"]
    assert main(["compare", str(table), *some, "--out", out]) == 0
    left = (tmp_path / "some" / "results.csv").read_text().splitlines()
    assert left == [lines[0], "b,x,1,0,1.0", "b,xxx,1,0,3.0"]
    assert main(["compare", str(table), "--agent", "xxxx", "--out", out]) == 1
    assert "unknown agent of what is compared 'xxxx'" in capsys.readouterr().err
