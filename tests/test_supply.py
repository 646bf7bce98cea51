"""What umdqn depends on: ranges with two ends, and no GPL without asking for it."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("supply", ROOT / "tools" / "supply.py")
supply = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(supply)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_what_is_always_installed_is_free_of_copyleft():
    found = supply.closure(PROJECT["dependencies"])
    assert {"jax", "jaxlib", "numpy", "gymnasium"} <= set(found)
    assert {name for name, kind in found.items() if "GPL" in kind or "see" in kind} == set()


@pytest.mark.parametrize(("extra", "package"), [("atari", "ale-py"), ("minatar", "minatar")])
def test_copyleft_is_recognised_where_it_is(extra, package):
    pytest.importorskip(package.replace("-", "_"))
    assert supply.closure(PROJECT["optional-dependencies"][extra])[package] == "GPL"


def test_every_dependency_has_an_oldest_and_a_newest_version():
    for extra, stated in {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}.items():
        for text in stated:
            if not text.startswith("umdqn["):
                assert re.search(r">=[\d.]+,<[\d.]+$|==[\d.]+$", text), (extra, text)
    pins = dict(pin.split("==") for pin in supply.oldest())
    assert pins["jax"] == re.search(r"'jax>=([\d.]+)", str(PROJECT["dependencies"]))[1]


def test_the_list_of_licences_names_every_direct_dependency():
    listed = re.findall(r"^\| ([\w-]+) \|", (ROOT / "docs" / "licences.md").read_text(), re.M)
    direct = [re.split(r"[\[><=]", text)[0].lower() for text in PROJECT["dependencies"]]
    assert set(direct) <= set(listed)
