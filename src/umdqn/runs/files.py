"""Files: atomic writes, checked reads, locks."""

from __future__ import annotations

import contextlib
import csv
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
from filelock import lock_descriptor
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from umdqn.errors import UmdqnError

# Suffix of files that are being written; no other program uses it.
_TEMPORARY = ".umdqn-partial"
# Larger files are not read as JSON: no manifest, index or plan comes near.
_LARGEST_JSON = 64_000_000
# Absent on Windows.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


class Busy(UmdqnError):
    """Another process holds the lock of a directory."""


@contextlib.contextmanager
def locked(directory: Path, name: str = "lock") -> Iterator[None]:
    """Take the exclusive lock `name` of a directory, released when the process exits.

    Raises `Busy` if another process holds it. The lock file is created if needed, never truncated,
    and stays; a symbolic link in its place is refused.
    """
    path = directory / name
    try:
        if path.is_symlink():
            raise UmdqnError(f"{path} is a symbolic link: a lock must be a file of its own")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o666)
    except OSError as error:
        raise UmdqnError(f"cannot write in {directory}: {error.strerror}") from error
    try:
        if not _locks(descriptor, directory):
            raise Busy(f"another process is training in {directory}")
        yield
    finally:
        # Closing releases the lock.
        os.close(descriptor)


def _locks(descriptor: int, directory: Path) -> bool:
    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        raise UmdqnError(f"cannot lock {directory}: {error.strerror}") from error


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically: readers see the old content or all of the new."""
    try:
        descriptor, name = tempfile.mkstemp(_TEMPORARY, f".{path.name}.", path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # mkstemp makes private files; results get the permissions of any new file.
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
    """Return whether a file is the remainder of an interrupted write."""
    return re.fullmatch(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_TEMPORARY)}", path.name) is not None


def write_json(path: Path, data: Any) -> None:
    """Write indented JSON."""
    write_bytes(path, (json.dumps(data, indent=2) + "\n").encode())


def write_csv(path: Path, records: Sequence[Mapping[str, Any]], first: Sequence[str] = ()) -> None:
    """Write records as CSV; the columns named in `first` come first."""
    columns = list(dict.fromkeys([*first, *(name for record in records for name in record)]))
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns)
    table.writeheader()
    table.writerows(records)
    write_bytes(path, text.getvalue().encode())


class Unreadable(UmdqnError):
    """The system refuses to read a file that may be sound: nothing may be deleted because of it."""


def _no_access(path: Path, error: OSError) -> UmdqnError:
    gone = isinstance(error, (FileNotFoundError, IsADirectoryError))
    kind = UmdqnError if gone else Unreadable
    return kind(f"cannot read {path}: {error.strerror}")


def read_json(path: Path) -> Any:
    """Read JSON; raises a one-line `UmdqnError` if that fails."""
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise UmdqnError(f"{path} is corrupt: too large")
        return json.loads(path.read_text())
    except OSError as error:
        raise _no_access(path, error) from error
    except (ValueError, RecursionError) as error:
        raise UmdqnError(f"{path} is corrupt: not JSON") from error


def write_sealed(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON with a checksum of its content, for `read_sealed`."""
    write_json(path, {**data, "checksum": _checksum(data)})


def read_sealed(path: Path) -> dict[str, Any]:
    """Read JSON and verify its checksum."""
    return unsealed(path, read_json(path))


def unsealed(path: Path, data: Any) -> dict[str, Any]:
    """Verify the checksum of JSON data that was read from a file, and return the rest."""
    if not isinstance(data, dict) or data.pop("checksum", None) != _checksum(data):
        raise UmdqnError(f"{path} is corrupt: its checksum is wrong")
    return data


def _checksum(data: Mapping[str, Any]) -> str:
    """Return the checksum of the content; formatting does not matter."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def encode_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Encode named arrays as safetensors."""
    return save_tensors({name: np.asarray(a, order="C") for name, a in arrays.items()})


def read_bytes(path: Path, size: int | None = None) -> bytes:
    """Read a whole file; raises if it does not have the given size."""
    try:
        if size is not None and path.stat().st_size != size:
            raise UmdqnError(f"{path} is corrupt: its size is wrong")
        return path.read_bytes()
    except OSError as error:
        raise _no_access(path, error) from error


def parse_arrays(path: Path, data: bytes) -> dict[str, np.ndarray]:
    """Decode named arrays; `path` is named in the error if that fails."""
    try:
        return load_tensors(data)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise UmdqnError(f"{path} is corrupt: not a safetensors file") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_directory(path: Path) -> None:
    if os.name != "posix":  # Windows cannot open directories
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
