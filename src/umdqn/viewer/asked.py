"""What a request asks for: values of its query, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from umdqn.errors import InvalidField

# Longest text that is repeated in an error.
_SHOWN = 80
_MOST_RUNS = 64


class Asked:
    """The query of a request."""

    def __init__(self, pairs: Sequence[tuple[str, str]]):
        self._pairs = pairs

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; raise if it is absent and has no default."""
        found = [value for key, value in self._pairs if key == name]
        if len(found) > 1 or (not found and default is None):
            raise InvalidField(name, None if not found else "several", "one value")
        return found[0] if found else str(default)

    def whole(self, name: str, default: int | None = None, most: int = 2**53) -> int:
        """Return a whole number from 0 to `most`."""
        text = self.text(name, None if default is None else str(default))
        digits = text.isascii() and text.isdigit() and len(text) <= 16
        if not digits or int(text) > most:
            raise InvalidField(name, text[:_SHOWN], f"a whole number from 0 to {most}")
        return int(text)

    def number(self, name: str, default: float) -> float:
        """Return a finite number, or the default."""
        text = self.text(name, "")
        try:
            found = float(text[:_SHOWN]) if text else default
        except ValueError:
            found = math.nan
        if math.isnan(found) or (text and math.isinf(found)):
            raise InvalidField(name, text[:_SHOWN], "a finite number")
        return found

    def choice(self, name: str, allowed: Sequence[Any], default: Any) -> Any:
        """Return one of some values, given as text."""
        text = self.text(name, str(default))
        for value in allowed:
            if str(value) == text:
                return value
        raise InvalidField(name, text[:_SHOWN], f"one of {', '.join(map(str, allowed))}")

    def has(self, name: str) -> bool:
        """Return whether a value is given."""
        return any(key == name for key, _ in self._pairs)

    def runs(self) -> list[str]:
        """Return the ids of several runs."""
        found = list(dict.fromkeys(value for key, value in self._pairs if key == "run"))
        if not 1 <= len(found) <= _MOST_RUNS:
            raise InvalidField("run", f"{len(found)} runs", f"from 1 to {_MOST_RUNS} of them")
        return found
