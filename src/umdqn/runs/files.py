"""Files: atomic writes, checked reads, locks.

Files of a run or a sweep may come from anywhere. They are opened only if they are regular files in
their own place: a link could lead to a file of the user's, and a pipe would never answer.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import io
import json
import os
import re
import stat
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
from umdqn.text import cell

# Suffix of files that are being written; no other program uses it.
_TEMPORARY = ".umdqn-partial"
# Larger files are not read as JSON: no manifest, index or plan comes near.
_LARGEST_JSON = 64_000_000
# Where the system has them: follow no links, wait for no pipe, translate no line ends.
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


class Busy(UmdqnError):
    """Another process holds the lock of a directory."""


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor; raises `UmdqnError` for anything else."""
    if path.is_symlink():
        raise _not_own(path)
    try:
        descriptor = os.open(path, flags | _FLAGS, 0o666)
    except OSError as error:
        # A pipe without a reader, or a socket.
        raise _not_regular(path) if error.errno == errno.ENXIO else error from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular(path)
    return descriptor


def check_folder(path: Path) -> None:
    """Raise if there is anything but a directory of its own at a path; it may be absent."""
    if path.is_symlink():
        raise _not_own(path)
    if path.exists() and not path.is_dir():
        raise UmdqnError(f"{path} is not a directory")


def _not_regular(path: Path) -> UmdqnError:
    return UmdqnError(f"{path} is not a regular file")


def _not_own(path: Path) -> UmdqnError:
    return UmdqnError(
        f"{path} is a symbolic link: what is in a run or a sweep must not lead elsewhere "
        "(cp -rL copies a directory without links)"
    )


@contextlib.contextmanager
def locked(directory: Path, name: str = "lock") -> Iterator[None]:
    """Take the exclusive lock `name` of a directory, released when the process exits.

    Raises `Busy` if another process holds it. The lock file is created if needed, never truncated,
    and stays.
    """
    try:
        descriptor = open_regular(directory / name, os.O_RDWR | os.O_CREAT)
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


def append_text(path: Path, text: str) -> None:
    """Append to a file, which is made if it is absent, and wait until the disk has it."""
    try:
        descriptor = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(descriptor, "ab") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UmdqnError(f"cannot write {path}: {error.strerror}") from error


def write_bytes(path: Path, data: bytes, durable: bool = True) -> None:
    """Write a file atomically: readers see the old content or all of the new.

    A link in its place is replaced, not followed. `durable` waits until the disk has it.
    """
    try:
        descriptor, name = tempfile.mkstemp(_TEMPORARY, f".{path.name}.", path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            # mkstemp makes private files; results get the permissions of any new file.
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        if durable:
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
    """Write records as CSV; the columns named in `first` come first.

    Text is written by `text.cell`, whose inverse is `of_cell`.
    """
    columns = list(dict.fromkeys([*first, *(name for record in records for name in record)]))
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(map(cell, columns))
    table.writerows([cell(record.get(name, "")) for name in columns] for record in records)
    # Half of a surrogate pair has no encoding.
    write_bytes(path, text.getvalue().encode(errors="backslashreplace"))


class Unreadable(UmdqnError):
    """The system refuses to read a file that may be sound: nothing may be deleted because of it."""


def _no_access(path: Path, error: OSError) -> UmdqnError:
    gone = isinstance(error, (FileNotFoundError, IsADirectoryError))
    kind = UmdqnError if gone else Unreadable
    return kind(f"cannot read {path}: {error.strerror}")


def read_json(path: Path) -> Any:
    """Read JSON; raises a one-line `UmdqnError` if that fails."""
    try:
        return json.loads(read_bytes(path, most=_LARGEST_JSON))
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


def read_bytes(path: Path, size: int | None = None, most: int | None = None) -> bytes:
    """Read a whole file; raises if it does not have the given size, or more than the most."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            found = os.fstat(file.fileno()).st_size
            if size is not None and found != size:
                raise UmdqnError(f"{path} is corrupt: its size is wrong")
            if most is not None and found > most:
                raise UmdqnError(f"{path} is corrupt: too large")
            return file.read()
    except OSError as error:
        raise _no_access(path, error) from error


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Write named arrays; returns size and checksum of the file, for `read_arrays`."""
    data = encode_arrays(arrays)
    write_bytes(path, data)
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def read_arrays(path: Path, known: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Read named arrays; raises unless the file has its size and its checksum."""
    data = read_bytes(path, known["bytes"])
    if hashlib.sha256(data).hexdigest() != known["sha256"]:
        raise UmdqnError(f"{path} is corrupt: its checksum is wrong")
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
