"""The page against strangers, other sites, links, and code that runs name."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from umdqn.cli.main import main
from umdqn.errors import Notice, UmdqnError
from umdqn.extras import install_command
from umdqn.runs.files import read_sealed, write_sealed
from umdqn.runs.run import Run
from umdqn.viewer.roots import Roots
from umdqn.viewer.server import open_browser
from viewing import planted, served


def manifest_of(path: Path, **config: object) -> None:
    """Change the configuration in a manifest, as somebody who can write it would."""
    manifest = read_sealed(path / "manifest.json")
    write_sealed(path / "manifest.json", manifest | {"config": manifest["config"] | config})


@pytest.fixture
def copy(small_run: Run, tmp_path: Path) -> Path:
    return planted(small_run, tmp_path)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:{port}", "[::1]:{port}"])
def test_names_of_this_machine_are_answered(host: str, tmp_path: Path):
    with served([tmp_path]) as page:
        assert page.request("/", Host=host.format(port=page.port)).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "localhost@evil.example"}, 403),
        ({"Host": "10.0.0.7"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}, 403),
        ({"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"}, 403),
        ({"Content_Length": "5"}, 413),
        ({"Transfer_Encoding": "chunked"}, 413),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, 200),
        ({"Sec_Fetch_Site": "same-origin", "Sec_Fetch_Mode": "cors"}, 200),
    ],
)
def test_other_sites_are_refused(headers: dict[str, str], status: int, tmp_path: Path):
    with served([tmp_path]) as page:
        headers = {name: value.format(port=page.port) for name, value in headers.items()}
        assert page.request("/api/runs", **headers).status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X"])
def test_nothing_can_be_written(method: str, tmp_path: Path):
    with served([tmp_path]) as page:
        assert page.request("/api/runs", method).status == 405


def test_answers_forbid_what_the_page_does_not_need(tmp_path: Path):
    with served([tmp_path]) as page:
        for path in ("/", "/api/runs", "/static/main.js", "/nothing"):
            headers = page.request(path).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert "access-control-allow-origin" not in headers


def test_other_machines_need_the_token(tmp_path: Path):
    with served([tmp_path], "0.0.0.0") as page:
        token = page.page.address.partition("?token=")[2]
        assert len(token) >= 32
        for given in ("", "wrong", token[:-1]):
            assert page.request(f"/?token={given}").status == 401
            assert page.request("/api/runs", Authorization=f"Bearer {given}").status == 401
            assert page.request("/", Cookie=f"umdqn-view-{page.port}={given}").status == 401
        login = page.request(f"/?run=a%0d%0aX:1&token={token}")
        assert login.status == 303
        assert login.headers["location"] == "/?run=a%0D%0AX%3A1"
        cookie = login.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert page.request("/api/runs", Cookie=cookie.partition(";")[0]).status == 200
        assert page.request("/api/runs", Authorization=f"Bearer {token}").status == 200
        # A name that another site controls is refused, whatever it brings.
        evil = {"Host": "evil.example", "Authorization": f"Bearer {token}"}
        assert page.request("/api/runs", **evil).status == 403


def test_links_are_neither_followed_nor_read(copy: Path, tmp_path: Path):
    root, outside = copy.parent, tmp_path / "outside"
    shutil.copytree(copy, outside / "run")
    (root / "linked").symlink_to(outside / "run")
    (root / "group").symlink_to(outside)
    shutil.copytree(copy, root / "manifest")
    (root / "manifest" / "manifest.json").unlink()
    (root / "manifest" / "manifest.json").symlink_to(outside / "run" / "manifest.json")
    for name in ("metrics", "checkpoint", "folder", "trust"):
        shutil.copytree(copy, root / name)
    (root / "metrics" / "metrics.jsonl").unlink()
    (root / "metrics" / "metrics.jsonl").symlink_to(outside / "run" / "metrics.jsonl")
    agents = root / "checkpoint" / "checkpoints" / "0000003000.safetensors"
    agents.unlink()
    agents.symlink_to(outside / "run" / "checkpoints" / agents.name)
    shutil.rmtree(root / "folder" / "checkpoints")
    (root / "folder" / "checkpoints").symlink_to(outside / "run" / "checkpoints")
    (root / "trust" / "calibration.json").symlink_to(outside / "secret")
    with served([root]) as page:
        runs = {run["id"]: run for run in page.ask("runs")["runs"]}
        assert set(runs) == {"run", "metrics", "checkpoint", "folder", "trust"}
        assert "symbolic link" in runs["metrics"]["error"]
        assert "symbolic link" in page.refusal("curves", run="metrics")
        assert "symbolic link" in page.refusal("laws", run="checkpoint", state="1,1")
        assert "symbolic link" in page.refusal("run", run="folder")
        assert "symbolic link" in page.ask("run", run="trust")["trust"]["error"]
        # A run that becomes a link while it is shown.
        shutil.rmtree(copy)
        copy.symlink_to(outside / "run")
        assert "symbolic link" in page.refusal("run", run="run")


def test_a_pipe_in_place_of_a_file_blocks_nothing(copy: Path):
    (copy / "metrics.jsonl").unlink()
    os.mkfifo(copy / "metrics.jsonl")
    with served([copy.parent]) as page:
        assert "not a file" in page.ask("runs")["runs"][0]["error"]


CODE = "from pathlib import Path\nPath(__file__).with_name('imported').touch()\n"


@pytest.fixture
def trap(copy: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module that an import would find; the path that shows whether it was imported."""
    (copy.parent / "trapped_code.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(copy.parent))
    yield copy.parent / "imported"
    sys.modules.pop("trapped_code", None)


@pytest.mark.parametrize(
    "changes",
    [
        {"env": "trapped_code:Env"},
        {"wrappers": ["clip-reward", "trapped_code:Wrapper"]},
        {"policy": "trapped_code:policy"},
        {"optimiser": {"name": "given", "transformation": "trapped_code:optimiser"}},
        {"optimiser": {"name": "mine", "class": "trapped_code:Optimiser"}},
        {"replay": {"name": "trapped_code:Replay"}},
        {"exploration": {"name": "greedy", "class": "trapped_code:Greedy"}},
        {"metric": {"name": "mine", "class": "trapped_code:Metric"}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_code_that_laws_do_not_need_is_not_imported(copy: Path, trap: Path, changes: dict):
    with served([copy.parent]) as page:
        before = page.ask("laws", run="run", state="2,6")["laws"]
        manifest_of(copy, **changes)
        assert page.ask("laws", run="run", state="2,6")["laws"] == before
        told = page.ask("open", run="run")["no_environment"]
        if changes.keys() & {"env", "wrappers", "policy"}:
            assert "trapped_code" in told
            assert "does not import" in told
            assert "does not import" in page.refusal("episode", run="run")
            assert "does not import" in page.refusal("calibration", run="run", episodes=2)
        else:
            assert told is None
    assert not trap.exists()


@pytest.mark.parametrize("kind", ["representation", "decision", "torso", "support"])
@pytest.mark.parametrize(
    "part", [{"name": "mine", "class": "trapped_code:Part"}, {"name": "trapped_code:Part"}]
)
def test_laws_that_need_code_of_users_are_refused(copy: Path, trap: Path, kind: str, part: dict):
    manifest_of(copy, **{kind: part})
    with served([copy.parent]) as page:
        assert page.ask("runs")["runs"][0]["status"] == "finished"
        assert page.ask("curves", run="run")["series"][0]["steps"] == [1_000, 2_000, 3_000]
        assert "does not import" in page.refusal("laws", run="run", state="2,6")
        assert kind in page.refusal("open", run="run")
    assert not trap.exists()


def test_a_torso_that_a_function_of_users_makes_is_not_made(copy: Path, trap: Path):
    manifest_of(copy, torso={"name": "given", "make": "trapped_code:make"})
    with served([copy.parent]) as page:
        assert "does not import" in page.refusal("open", run="run")
    assert not trap.exists()


def test_mistakes_on_the_command_line_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = str(other.getsockname()[1])
        for arguments, named in (
            ([], "runs: there is no such directory"),
            (["nowhere"], "nowhere: there is no such directory"),
            (["file"], "file: is not a directory"),
            ([".", "--port", "99999"], "port = 99999"),
            ([".", "--port", "x"], "port = 'x'"),
            ([".", "--port", port], f"--port {port} on 127.0.0.1: address already in use"),
            ([".", "--host", "no.such.host.invalid"], "--host no.such.host.invalid"),
        ):
            assert main(["view", *arguments]) == 1
            said = capsys.readouterr().err
            assert named in said
            assert len(said.splitlines()) == 1


def test_a_missing_browser_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    with pytest.warns(Notice, match="no browser was found"):
        open_browser("http://127.0.0.1:1/")


def test_the_missing_extra_is_named(tmp_path: Path):
    code = "import sys; sys.modules['uvicorn'] = None\n"
    code += "from umdqn.cli.main import main; sys.exit(main(['view', '.']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    known = f"umdqn: umdqn view needs an extra: {install_command('view')}\n"
    assert (done.returncode, done.stderr) == (1, known)


def test_a_huge_tree_is_searched_in_part_and_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("umdqn.viewer.roots._MOST_DIRECTORIES", 5)
    for number in range(9):
        (tmp_path / f"directory-{number}").mkdir()
    roots = Roots([tmp_path])
    roots.search()
    assert not roots.complete
    with pytest.raises(UmdqnError, match="no run"):
        roots.run("directory-1")
