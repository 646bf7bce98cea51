"""Clusters that are not there."""

import socket

import pytest

from umdqn.cli.main import main


def test_an_unreachable_cluster_is_one_line(tmp_path, capsys):
    pytest.importorskip("ray")
    arguments = ["sweep", "--env", "grid-world", "--agent", "dqn", "--out", str(tmp_path / "out")]
    for address in ("no-such-scheme", "127.0.0.1:1"):
        assert main([*arguments, "--ray", address]) == 1
        printed = capsys.readouterr().err
        assert f"--ray {address}: cannot reach a Ray cluster" in printed
        assert "Traceback" not in printed
    for address in ("", "ray://127.0.0.1:1"):
        assert main([*arguments, "--ray", address]) == 1
        assert f"ray = {address!r} is not allowed: local, auto, or" in capsys.readouterr().err
    # What never ran stands in nobody's way.
    assert not (tmp_path / "out" / "sweep.json").exists()
    assert main([*arguments, "--ray", "local", "--workers", "2"]) == 1
    assert "the Ray cluster knows how many it has" in capsys.readouterr().err


@pytest.mark.slow
def test_something_else_that_listens_is_no_cluster(tmp_path, monkeypatch, capsys):
    pytest.importorskip("ray")
    monkeypatch.setattr("umdqn.sweeps.pools._PATIENCE", 8.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        point = ["sweep", "--env", "grid-world", "--agent", "dqn", "--ray", address]
        assert main([*point, "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert f"--ray {address}: cannot reach a Ray cluster: no answer within 8 seconds" in error
    assert error.count("\n") == 1
