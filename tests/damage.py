"""Damage to files: bytes that change, and values of JSON that make no sense."""

import copy
import json

from umdqn.errors import UmdqnError

NONSENSE = (None, True, -1, 0, 2**70, 1.5, 1e300, "x", "\x1b[2J", "../../x", [], [[]], {}, {"a": 1})


def mutate(data, random, other):
    """Flips, cuts, swaps, growth and bombs."""
    data = bytearray(data)
    kind = random.integers(7)
    at = int(random.integers(max(len(data), 1)))
    if kind == 0 and data:
        data[at] ^= 1 << int(random.integers(8))
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        data[at:at] = random.bytes(int(random.integers(1, 64)))
    elif kind == 3:
        return bytes(other)
    elif kind == 4:
        stop = at + int(random.integers(1, 512))
        data[at:stop] = bytes(len(data[at:stop]))
    elif kind == 5:
        return b"[" * 200_000 if random.integers(2) else b'{"a":' * 100_000
    else:
        # A header that promises far more than there is.
        data[:8] = int(random.integers(2**40, 2**62)).to_bytes(8, "little")
    return bytes(data)


def places(data, path=()):
    """The paths of everything in JSON data; of lists the first two entries."""
    inner = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data[:2])
        if isinstance(data, list)
        else ()
    )
    for key, value in inner:
        yield (*path, key)
        yield from places(value, (*path, key))


def replaced(data, path, value):
    """JSON data with one value replaced, or removed if the value is `...`."""
    data = copy.deepcopy(data)
    *way, last = path
    inner = data
    for key in way:
        inner = inner[key]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return data


def nonsense(data, random):
    """JSON data with up to three values replaced, removed, or exchanged for those elsewhere."""
    for _ in range(int(random.integers(1, 4))):
        paths = list(places(data))
        if not paths:
            break
        path, other = (paths[int(random.integers(len(paths)))] for _ in range(2))
        choices = (..., _at(data, other), *NONSENSE)
        data = replaced(data, path, choices[int(random.integers(len(choices)))])
    return data


def _at(data, path):
    for key in path:
        data = data[key]
    return json.loads(json.dumps(data))


def toml(value):
    """JSON data as TOML, which has no null."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {toml(one)}" for key, one in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if value is None:
        return "2026-01-01"
    return json.dumps(value).replace("Infinity", "inf").replace("NaN", "nan")


def toml_file(data):
    """A table of JSON data as a TOML file; other data as what is no such file."""
    if not isinstance(data, dict):
        return toml(data)
    return "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in data.items())


def refused(read):
    """Whether reading was refused in one line; any other exception is a failure."""
    try:
        read()
    except UmdqnError as error:
        message = str(error)
    else:
        return False
    assert message.isprintable()
    assert len(message) < 700
    return True
