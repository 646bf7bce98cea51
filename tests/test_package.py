"""The package as users install it: wheel and sdist hold everything, and run elsewhere."""

import os
import shutil
import site
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
_BUILD = (
    "import sys; from setuptools import build_meta; "
    "print(getattr(build_meta, f'build_{sys.argv[1]}')(sys.argv[2]))"
)

pytestmark = pytest.mark.slow


def run(*command, cwd, check=True):
    """Run a program that sees nothing of this repository's environment."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, env=clean
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def build(kind, source, out):
    done = run(sys.executable, "-c", _BUILD, kind, out, cwd=source)
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist, built from a copy of the sources."""
    base = tmp_path_factory.mktemp("package")
    source = base / "source"
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (base / "dist").mkdir()
    return build("wheel", source, base / "dist"), build("sdist", source, base / "dist")


def contents(wheel):
    with zipfile.ZipFile(wheel) as file:
        return {name for name in file.namelist() if ".dist-info" not in name}


def test_the_wheel_holds_every_file_of_the_package(built):
    files = (ROOT / "src" / "umdqn").rglob("*")
    expected = {
        path.relative_to(ROOT / "src").as_posix()
        for path in files
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert contents(built[0]) == expected
    assert {"umdqn/py.typed", "umdqn/export/portable/model.py"} <= expected


def test_a_wheel_of_the_sdist_is_the_same(built, tmp_path):
    wheel, sdist = built
    with tarfile.open(sdist) as file:
        file.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    again = build("wheel", source, tmp_path)
    assert again.name == wheel.name
    assert contents(again) == contents(wheel)


def environment(version, wheel, path):
    """Make an environment with the wheel in it; return its interpreter."""
    own = version == f"{sys.version_info.major}.{sys.version_info.minor}"
    found = sys.executable if own else shutil.which(f"python{version}")
    if found is None:
        pytest.skip(f"python{version} is not here")
    run(found, "-m", "venv", *(["--without-pip"] if own else []), path, cwd=path.parent)
    python = path / "bin" / "python"
    if not own:
        run(python, "-m", "pip", "install", "--quiet", wheel, cwd=path)
        return python
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    run(*pip, "--no-deps", "--no-index", wheel, cwd=path)
    # Dependencies, but not the editable install: its own path file is not read from here.
    packages = path / "lib" / f"python{version}" / "site-packages"
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return python


@pytest.mark.parametrize("version", VERSIONS)
def test_an_installed_wheel_trains_reads_exports_and_is_typed(version, built, tmp_path):
    python = environment(version, built[0], tmp_path / "env")
    umdqn, work = python.with_name("umdqn"), tmp_path / "work"
    work.mkdir()
    where = run(python, "-c", "import umdqn; print(umdqn.__file__)", cwd=work).stdout
    assert where.startswith(str(tmp_path / "env"))
    small = ("--steps", "300", "--replay.warmup", "100", "--evaluation.episodes", "5")
    trained = run(umdqn, "train", "grid-world", "dqn", *small, "--out", "run", cwd=work)
    assert trained.stdout.splitlines()[-1] == "run"
    assert "return_mean" in run(umdqn, "evaluate", "run", "--episodes", "5", cwd=work).stdout
    run(umdqn, "export", "run", "--out", "model", cwd=work)
    assert (work / "model" / "umdqn_portable" / "model.py").is_file()
    if shutil.which("mypy"):
        (work / "typed.py").write_text(
            "import umdqn\n\nrun: umdqn.Run = umdqn.load('run')\nwrong: int = umdqn.load('run')\n"
        )
        mypy = [sys.executable, "-m", "mypy", "--python-executable", python, "typed.py"]
        found = run(*mypy, "--follow-imports=silent", cwd=work, check=False).stdout
        assert "typed.py:4: error: Incompatible types in assignment" in found
        assert "Found 1 error in 1 file" in found
