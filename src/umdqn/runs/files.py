"""Files that are either whole or not there: atomic writes, safe reads."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from umdqn.types import UmdqnError

# How the names of files end that are being written: nobody else's do.
_TEMPORARY = ".umdqn-partial"
# No description of a run is nearly as long.
_LARGEST_JSON = 64_000_000


class Busy(UmdqnError):
    """Another process holds a directory."""


@contextlib.contextmanager
def locked(directory: Path, name: str = "lock") -> Iterator[None]:
    """Hold a directory alone, or what a name in it stands for, while this process lives at most."""
    try:
        file = (directory / name).open("w")
    except OSError as error:
        raise UmdqnError(f"cannot write in {directory}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another process is training in {directory}") from None
        yield


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees all of it or what was there before."""
    try:
        descriptor, name = tempfile.mkstemp(_TEMPORARY, f".{path.name}.", path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # A temporary file is private; a result has the permissions of any new file.
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        _sync_directory(path.parent)
    except OSError as error:
        raise UmdqnError(f"cannot write {path}: {error.strerror}") from error


def is_temporary(path: Path) -> bool:
    """Whether a file is what is left of one that was being written."""
    return re.fullmatch(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_TEMPORARY)}", path.name) is not None


def write_json(path: Path, data: Any) -> None:
    """Write JSON that people can read."""
    write_bytes(path, (json.dumps(data, indent=2) + "\n").encode())


def write_csv(path: Path, records: Sequence[Mapping[str, Any]], first: Sequence[str] = ()) -> None:
    """Write records as a table whose columns begin with `first`."""
    columns = list(dict.fromkeys([*first, *(name for record in records for name in record)]))
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns)
    table.writeheader()
    table.writerows(records)
    write_bytes(path, text.getvalue().encode())


class Unreadable(UmdqnError):
    """The system does not hand out a file, which may be sound: nothing to be replaced."""


def _no_access(path: Path, error: OSError) -> UmdqnError:
    gone = isinstance(error, (FileNotFoundError, IsADirectoryError))
    kind = UmdqnError if gone else Unreadable
    return kind(f"cannot read {path}: {error.strerror}")


def read_json(path: Path) -> Any:
    """Read JSON, or say in one line why not."""
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise UmdqnError(f"{path} is corrupt: far too long")
        return json.loads(path.read_text())
    except OSError as error:
        raise _no_access(path, error) from error
    except (ValueError, RecursionError) as error:
        raise UmdqnError(f"{path} is corrupt: not JSON") from error


def write_sealed(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON with a checksum of its content."""
    write_json(path, {**data, "checksum": _checksum(data)})


def read_sealed(path: Path) -> dict[str, Any]:
    """Read JSON whose content is what was written."""
    data = read_json(path)
    if not isinstance(data, dict) or data.pop("checksum", None) != _checksum(data):
        raise UmdqnError(f"{path} is corrupt: its checksum is wrong")
    return data


def _checksum(data: Mapping[str, Any]) -> str:
    """The checksum of content, not of its spelling."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def encode_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Named arrays as safetensors."""
    return save_tensors({name: np.asarray(a, order="C") for name, a in arrays.items()})


def read_bytes(path: Path, size: int | None = None) -> bytes:
    """All of a file, which must have a known size if one is given."""
    try:
        if size is not None and path.stat().st_size != size:
            raise UmdqnError(f"{path} is corrupt: its size is wrong")
        return path.read_bytes()
    except OSError as error:
        raise _no_access(path, error) from error


def parse_arrays(path: Path, data: bytes) -> dict[str, np.ndarray]:
    """Named arrays from the bytes of a file, or in one line why not."""
    try:
        return load_tensors(data)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise UmdqnError(f"{path} is corrupt: not a safetensors file") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
