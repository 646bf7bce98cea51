"""Operations of exported agents, as NumPy computes them.

Each takes its settings and its arrays. Their meanings are those of `jax.lax`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# XLA adds cumulative sums in blocks of so many.
_BLOCK = 16


def _broadcast(p: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
    shape = [1] * len(p["shape"])
    for axis, size in zip(p["axes"], x.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(x.reshape(shape), p["shape"])


def _dot(p: Mapping[str, Any], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    (left, right), (left_batch, right_batch) = p["contract"], p["batch"]
    letters = [chr(97 + i) for i in range(x.ndim + y.ndim)]
    xs, ys = letters[: x.ndim], letters[x.ndim :]
    for i, j in [*zip(left, right, strict=True), *zip(left_batch, right_batch, strict=True)]:
        ys[j] = xs[i]
    kept = [xs[i] for i in left_batch]
    kept += [c for i, c in enumerate(xs) if i not in left and i not in left_batch]
    kept += [c for i, c in enumerate(ys) if i not in right and i not in right_batch]
    return np.einsum(f"{''.join(xs)},{''.join(ys)}->{''.join(kept)}", x, y, optimize=True)


def _positions(p: Mapping[str, Any], shape: Sequence[int], indices: np.ndarray) -> Any:
    """Return an index per axis of an array, `[*batch, *window]`, and which windows fit inside."""
    batch, sizes, rank = indices.shape[:-1], p["sizes"], len(shape)
    inside, found = np.ones(batch, bool), []
    for axis in range(rank):
        start = np.zeros(batch, np.int64)
        if axis in p["axes"]:
            start = indices[..., p["axes"].index(axis)].astype(np.int64)
        if axis in p["batching"]:
            along = p["indices_batching"][p["batching"].index(axis)]
            start = np.broadcast_to(
                np.arange(shape[axis]).reshape(
                    [-1 if i == along else 1 for i in range(len(batch))]
                ),
                batch,
            )
        most = shape[axis] - sizes[axis]
        inside &= (start >= 0) & (start <= most)
        window = np.arange(sizes[axis]).reshape([-1 if i == axis else 1 for i in range(rank)])
        found.append(np.clip(start, 0, most).reshape(*batch, *[1] * rank) + window)
    return tuple(found), inside


def _gather(p: Mapping[str, Any], x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    where, inside = _positions(p, x.shape, indices)
    found = x[where]
    if p["fill"] is not None:
        found = np.where(inside.reshape(*inside.shape, *[1] * x.ndim), found, p["fill"])
    batch, kept = indices.shape[:-1], [a for a in range(x.ndim) if a not in p["dropped"]]
    found = found.reshape(*batch, *(p["sizes"][a] for a in kept))
    return np.moveaxis(found, range(len(batch), found.ndim), p["offsets"])


def _scatter(
    p: Mapping[str, Any], x: np.ndarray, indices: np.ndarray, updates: np.ndarray
) -> np.ndarray:
    """Write or add windows; those that do not fit inside are dropped."""
    where, inside = _positions(p, x.shape, indices)
    batch = indices.ndim - 1
    moved = np.moveaxis(updates, p["offsets"], range(batch, updates.ndim))
    moved = moved.reshape(*indices.shape[:-1], *p["sizes"])
    fits = np.broadcast_to(inside.reshape(*inside.shape, *[1] * x.ndim), moved.shape)
    kept = tuple(np.broadcast_to(axis, moved.shape)[fits] for axis in where)
    result = x.copy()
    if p["adds"]:
        np.add.at(result, kept, moved[fits])
    else:
        result[kept] = moved[fits]
    return result


def _sort(p: Mapping[str, Any], *given: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(given[0], axis=p["axis"], kind="stable")
    for key in given[1 : p["keys"]][::-1]:
        order = np.lexsort((key, given[0]), axis=p["axis"])
    return [np.take_along_axis(x, order, p["axis"]) for x in given]


def _pad(p: Mapping[str, Any], x: np.ndarray, value: np.ndarray) -> np.ndarray:
    if any(low < 0 or high < 0 for low, high, _ in p["pad"]):
        raise ValueError("this reader does not know negative padding")
    sides = list(zip(x.shape, p["pad"], strict=True))
    inner = [max(n + (n - 1) * between, 0) for n, (_, _, between) in sides]
    shape = [low + n + high for n, (low, high, _) in zip(inner, p["pad"], strict=True)]
    result = np.full(shape, value, x.dtype)
    starts = zip(inner, p["pad"], strict=True)
    result[tuple(slice(low, low + n, between + 1) for n, (low, _, between) in starts)] = x
    return result


def _along(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    def apply(p: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
        if not p.get("reverse"):
            return function(x, axis=p["axis"])
        return np.flip(function(np.flip(x, p["axis"]), axis=p["axis"]), p["axis"])

    return apply


def _summed(x: np.ndarray, axis: int) -> np.ndarray:
    """Return cumulative sums, added in the order of XLA: rounding decides ties of quantiles."""
    return np.moveaxis(_summed_rows(np.moveaxis(x, axis, 0)), 0, axis)


def _summed_rows(x: np.ndarray) -> np.ndarray:
    if len(x) <= _BLOCK:
        return np.cumsum(x, axis=0, dtype=x.dtype)
    blocks = -(-len(x) // _BLOCK)
    padded = np.zeros((blocks * _BLOCK, *x.shape[1:]), x.dtype)
    padded[: len(x)] = x
    rows = np.cumsum(padded.reshape(blocks, _BLOCK, *x.shape[1:]), axis=1, dtype=x.dtype)
    rows[1:] += _summed_rows(rows[:, -1].copy())[:-1, None]
    return rows.reshape(padded.shape)[: len(x)]


def _over_axes(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    return lambda p, x: function(x, axis=tuple(p["axes"]))


def _plain(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    return lambda p, *given: function(*given)


def _of_one(function: Callable[[float], float]) -> Callable[..., np.ndarray]:
    return _plain(np.frompyfunc(function, 1, 1))


def _power(p: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
    return x ** np.asarray(p["power"], x.dtype) if p["power"] >= 0 else 1 / x ** -p["power"]


def _select(p: Mapping[str, Any], which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    return (
        np.choose(which.astype(np.int64), cases)
        if len(cases) > 2
        else np.where(which, *cases[::-1])
    )


def _split(p: Mapping[str, Any], x: np.ndarray) -> list[np.ndarray]:
    return np.split(x, np.cumsum(p["sizes"])[:-1], axis=p["axis"])


def _slice(p: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
    return x[tuple(slice(*bounds) for bounds in p["bounds"])]


def _dynamic_slice(p: Mapping[str, Any], x: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    sides = zip(starts, p["sizes"], x.shape, strict=True)
    begins = [(min(max(int(s), 0), most - n), n) for s, n, most in sides]
    return x[tuple(slice(begin, begin + n) for begin, n in begins)]


def _iota(p: Mapping[str, Any]) -> np.ndarray:
    shape = [-1 if axis == p["axis"] else 1 for axis in range(len(p["shape"]))]
    return np.broadcast_to(np.arange(p["shape"][p["axis"]]).reshape(shape), p["shape"])


def _bitcast(p: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
    old, new = x.dtype.itemsize, np.dtype(p["dtype"]).itemsize
    found = np.ascontiguousarray(x if old != new or x.ndim else x.reshape(1)).view(p["dtype"])
    if old < new:
        return found[..., 0]
    return found.reshape(*x.shape, old // new) if old > new else found.reshape(x.shape)


def _logistic(x: np.ndarray) -> np.ndarray:
    return np.where(
        x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x)))
    )


_SIMPLE: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "add": np.add, "and": np.bitwise_and, "add_any": np.add, "cbrt": np.cbrt,
    "ceil": np.ceil, "copy": np.copy, "copy_p": np.copy, "cos": np.cos, "cosh": np.cosh,
    "div": np.divide, "eq": np.equal, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "floor": np.floor, "ge": np.greater_equal, "gt": np.greater, "is_finite": np.isfinite,
    "le": np.less_equal, "le_to": np.less_equal, "log": np.log, "log1p": np.log1p,
    "logistic": _logistic, "lt": np.less, "lt_to": np.less, "max": np.maximum, "min": np.minimum,
    "mul": np.multiply, "ne": np.not_equal, "neg": np.negative, "not": np.invert,
    "or": np.bitwise_or, "pow": np.power, "rem": np.fmod, "round": np.round, "sign": np.sign,
    "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square, "sub": np.subtract,
    "tan": np.tan, "tanh": np.tanh, "xor": np.bitwise_xor,
}  # fmt: skip

OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: _plain(function) for name, function in _SIMPLE.items()},
    "argmax": lambda p, x: np.argmax(x, axis=p["axis"]),
    "argmin": lambda p, x: np.argmin(x, axis=p["axis"]),
    "bitcast_convert_type": _bitcast,
    "broadcast_in_dim": _broadcast,
    "clamp": lambda p, low, x, high: np.clip(x, low, high),
    "concatenate": lambda p, *given: np.concatenate(given, axis=p["axis"]),
    "convert_element_type": lambda p, x: x.astype(p["dtype"]),
    "cummax": _along(np.maximum.accumulate),
    "cummin": _along(np.minimum.accumulate),
    "cumprod": _along(np.cumprod),
    "cumsum": _along(_summed),
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "erf": _of_one(math.erf),
    "erfc": _of_one(math.erfc),
    "gather": _gather,
    "integer_pow": _power,
    "iota": _iota,
    "pad": _pad,
    "reduce_and": _over_axes(np.all),
    "reduce_max": _over_axes(np.max),
    "reduce_min": _over_axes(np.min),
    "reduce_or": _over_axes(np.any),
    "reduce_prod": _over_axes(np.prod),
    "reduce_sum": _over_axes(np.sum),
    "reshape": lambda p, x: x.reshape(p["shape"]),
    "rev": lambda p, x: np.flip(x, tuple(p["axes"])),
    "rsqrt": lambda p, x: 1 / np.sqrt(x),
    "scatter": _scatter,
    "scatter-add": _scatter,
    "select_n": _select,
    "slice": _slice,
    "sort": _sort,
    "split": _split,
    "squeeze": lambda p, x: x.reshape(p["shape"]),
    "stack": lambda p, *given: np.stack(given, axis=p["axis"]),
    "transpose": lambda p, x: np.transpose(x, p["axes"]),
}
"""Functions of settings and arrays, by the names of operations."""
