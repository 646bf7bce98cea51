"""What umdqn depends on: `supply.py oldest` or `supply.py licences`.

`oldest` prints constraints that pin every direct dependency to the lower end of its range, for
`make ranges`. `licences` prints the packages that are installed for umdqn and for each of its
extras, with their licences, as docs/licences.md has them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
# Licences in classifiers and free text, by the word that tells them apart.
_FAMILIES = {
    "AGPL": "AGPL|Affero",
    "LGPL": "LGPL|Lesser",
    "GPL": "GPL|General Public",
    "Apache-2.0": "Apache",
    "MIT": r"\bMIT\b",
    "BSD": "BSD",
    "MPL-2.0": "MPL|Mozilla",
    "PSF": r"PSF|Python Software Foundation|Python-2\.0",
    "Unlicense": "Unlicense|Public Domain",
    "ISC": "ISC",
    "zlib": "zlib",
    "HPND": "HPND|Historical Permission",
}


def oldest() -> list[str]:
    """Return the lower end of the range of every direct dependency."""
    stated = list(PROJECT["dependencies"])
    for extra in PROJECT["optional-dependencies"].values():
        stated += extra
    pins = set()
    for requirement in map(Requirement, stated):
        for bound in requirement.specifier:
            if bound.operator in (">=", "=="):
                pins.add(f"{requirement.name}=={bound.version}")
    return sorted(pins)


def closure(stated: list[str]) -> dict[str, str]:
    """Return the licences of all installed packages that requirements need, by name."""
    found: dict[str, str] = {}
    left = [Requirement(text) for text in stated]
    while left:
        requirement = left.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        if name in found and not requirement.extras:
            continue
        found[name] = licence(name)
        for text in package.requires or ():
            inner = Requirement(text)
            extras = [*requirement.extras, ""]
            if inner.marker is None or any(inner.marker.evaluate({"extra": e}) for e in extras):
                left.append(inner)
    return found


def licence(name: str) -> str:
    """Return the family of a package's licence, from the fields in which packages state it."""
    metadata = distribution(name).metadata
    texts = [
        metadata.get("License-Expression", ""),
        " ".join(each for each in metadata.get_all("Classifier", []) if each.startswith("Lic")),
        (metadata.get("License") or "")[:200],
    ]
    for text in filter(None, texts):
        families = [family for family, words in _FAMILIES.items() if re.search(words, text)]
        if families:
            # "GPL" is in the names of its relatives, too.
            return families[0] if "GPL" in families[0] else ", ".join(families)
    return "see the package"


def table() -> Iterator[str]:
    """Yield the lines of docs/licences.md."""
    yield "# Licences"
    yield ""
    yield "umdqn itself is under the MIT licence. `make licences` writes this list from what is"
    yield "installed: direct and indirect dependencies. A package is listed with the first extra"
    yield "that needs it. Packages under the GPL come with extras only; tests hold that."
    yield ""
    yield "| package | licence | needed by |"
    yield "|---|---|---|"
    listed: set[str] = set()
    extras = {
        name: stated
        for name, stated in PROJECT["optional-dependencies"].items()
        if name not in ("dev", "bench")
    }
    for owner, stated in ({"umdqn": PROJECT["dependencies"]} | extras).items():
        for name, kind in sorted(closure(stated).items()):
            if name not in listed and name != "umdqn":
                listed.add(name)
                yield f"| {name} | {kind} | {owner if owner == 'umdqn' else f'umdqn[{owner}]'} |"


if __name__ == "__main__":
    print("\n".join({"oldest": oldest, "licences": lambda: list(table())}[sys.argv[1]]()))
