"""Mutants are what they are said to be: one change each, of code and of nothing else."""

import ast
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("mutate", ROOT / "tools/mutants/mutate.py")
mutate = sys.modules["mutate"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutate)

SOURCE = '''"""A module: 1 + 1."""
WIDTH = 2**3

@cache(size=1)
def area(width: Literal[3], height=4.5) -> float:
    """Return 2 * 3."""
    check(width > 0, "width", width, f"above {0}")
    if not height:
        raise UmdqnError("no" + str(1))
    log["é"] = stop_gradient(width)
    return width * height
'''.encode()
EXPECTED = {
    "height=4.5": {"height=9.0"},
    "check(width > 0": {"check(width >= 0", "check(width > 1"},
    '    check(width > 0, "width", width, f"above {0}")': {"    pass"},
    "if not height": {"if height"},
    'raise UmdqnError("no" + str(1))': {"pass"},
    'log["é"] = stop_gradient(width)': {'log["é"] = width', "pass"},
    "return width * height": {"return width / height", "return None"},
}


def test_mutants_change_code_and_leave_texts_types_and_choices_alone():
    expected = {
        SOURCE.decode().replace(old, new) for old, changes in EXPECTED.items() for new in changes
    }
    found = {one.apply(SOURCE).decode() for one in mutate.mutants("area.py", SOURCE)}
    # Parentheses keep an expression together, wherever it stands.
    assert {ast.unparse(ast.parse(text)) for text in found} == {
        ast.unparse(ast.parse(text)) for text in expected
    }


def test_the_sample_stays_when_other_code_changes():
    """Names depend on the changed function alone, and the order on the names."""
    before = [one.name for one in mutate.mutants("area.py", SOURCE)]
    longer = b"import numpy\n\n\ndef other():\n    return 1 + 1\n\n\n" + SOURCE
    after = [one.name for one in mutate.mutants("area.py", longer) if one.owner != "other"]
    assert len(set(before)) == len(before) == 10
    assert after == before == sorted(before)
