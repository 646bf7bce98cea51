"""From JAX programs to lists of operations as plain data, which `export.portable` evaluates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from umdqn.errors import UmdqnError
from umdqn.export.portable.operations import OPERATIONS

_PLATFORM = "cpu"
_SAME = ("stop_gradient", "optimization_barrier", "copy", "copy_p")
# Calls of programs inside of programs, by the parameter that holds the inner one.
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}


class Graphs:
    """Collects programs, and the arrays that they share."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[tuple[Any, ...], str] = {}

    def add(self, function: Callable[..., Any], *shapes: jax.ShapeDtypeStruct) -> dict[str, Any]:
        """Return the operations of a function of arrays; what it closes over is stored."""
        return self._graph(jax.make_jaxpr(function)(*shapes))

    def stored(self, value: Any) -> str:
        """Return the name of a stored array, the same for equal ones."""
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._names:
            self._names[key] = f"a{len(self._names)}"
            self.arrays[self._names[key]] = array
        return self._names[key]

    def _graph(self, closed: ClosedJaxpr) -> dict[str, Any]:
        nodes = _Nodes(self)
        refs = [nodes.fresh() for _ in closed.jaxpr.invars]
        outputs = nodes.inline(closed.jaxpr, [self.stored(c) for c in closed.consts], refs)
        return {"inputs": refs, "nodes": _needed(nodes.found, outputs), "outputs": outputs}

    def inner(self, program: ClosedJaxpr | Jaxpr) -> dict[str, Any]:
        """Return the operations of a loop's body."""
        return self._graph(
            program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, [])
        )


class _Nodes:
    """The operations of one program, with the programs that it calls written out."""

    def __init__(self, graphs: Graphs):
        self._graphs = graphs
        self._count = 0
        self.found: list[tuple[str, dict[str, Any], list[Any], list[int], list[str]]] = []
        self._known: dict[int, int] = {}
        """Values that are known beforehand, by their numbers."""

    def fresh(self) -> int:
        """Return a new number for a value."""
        self._count += 1
        return self._count - 1

    def inline(self, jaxpr: Jaxpr, consts: list[Any], inputs: list[Any]) -> list[Any]:
        """Add a program's operations; return references to its outputs."""
        refs = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *inputs], strict=True))

        def ref(atom: Any) -> Any:
            if isinstance(atom, Literal):
                kind: Any = atom.aval
                return self._graphs.stored(np.asarray(atom.val, kind.dtype))
            return refs[atom]

        for equation in jaxpr.eqns:
            sources = [ref(atom) for atom in equation.invars]
            outputs = self._added(equation, sources)
            refs.update(zip(equation.outvars, outputs, strict=True))
        return [ref(atom) for atom in jaxpr.outvars]

    def _added(self, equation: Any, sources: list[Any]) -> list[Any]:
        name, params = equation.primitive.name, equation.params
        if name in _CALLS:
            return self._called(params[_CALLS[name]], sources)
        if name in _SAME:
            return sources
        if name == "platform_index":
            target = self.fresh()
            self._known[target] = _platform(params["platforms"])
            return [target]
        if name == "cond" and sources[0] in self._known:
            return self._called(params["branches"][self._known[sources[0]]], sources[1:])
        targets = [self.fresh() for _ in equation.outvars]
        dtypes = [_dtype(var.aval) for var in equation.outvars]
        settings = self._settings(name, equation)
        self.found.append((name, settings, sources, targets, dtypes))
        return targets

    def _called(self, program: Any, sources: list[Any]) -> list[Any]:
        closed = program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, [])
        consts = [self._graphs.stored(const) for const in closed.consts]
        return self.inline(closed.jaxpr, consts, sources)

    def _settings(self, name: str, equation: Any) -> dict[str, Any]:
        params, inner = equation.params, self._graphs.inner
        if name == "scan":
            return {
                "graph": inner(params["jaxpr"]),
                "consts": params["num_consts"],
                "carry": params["num_carry"],
                "length": int(params["length"]),
                "reverse": params["reverse"],
            }
        if name == "while":
            return {
                "test": inner(params["cond_jaxpr"]),
                "step": inner(params["body_jaxpr"]),
                "test_consts": params["cond_nconsts"],
                "step_consts": params["body_nconsts"],
            }
        if name == "cond":
            return {"graphs": [inner(branch) for branch in params["branches"]]}
        if name in OPERATIONS:
            make = _SETTINGS.get(name)
            return {} if make is None else _plain(make(params, equation))
        # Reported only if the result is needed: see `_needed`.
        return {"unknown": name}


def _platform(platforms: Any) -> int:
    """Return the branch that this platform takes of a program that has several."""
    for index, names in enumerate(platforms):
        if names is None or _PLATFORM in names:
            return index
    raise UmdqnError(f"this agent has no program for the platform {_PLATFORM!r}")


def _dtype(aval: Any) -> str:
    return np.dtype(aval.dtype).name if isinstance(aval.dtype, np.dtype) else "object"


def _needed(nodes: list[Any], outputs: list[Any]) -> list[Any]:
    """Return the operations that outputs depend on; raises if one of them cannot be exported."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        name, settings, sources, targets, _ = node
        if not wanted.intersection(targets):
            continue
        if "unknown" in settings:
            raise UmdqnError(f"this agent cannot be exported: it uses jax.lax.{name}")
        wanted.update(sources)
        kept.append(node)
    return kept[::-1]


def _plain(value: Any) -> Any:
    """Return settings as JSON data."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, np.integer) else value


def _shape(params: Any, equation: Any) -> dict[str, Any]:
    return {"shape": equation.outvars[0].aval.shape}


def _axis(params: Any, equation: Any) -> dict[str, Any]:
    return {"axis": params["axis"], "reverse": params.get("reverse", False)}


def _axes(params: Any, equation: Any) -> dict[str, Any]:
    return {"axes": params["axes"]}


def _bounds(params: Any, equation: Any) -> dict[str, Any]:
    starts, ends = params["start_indices"], params["limit_indices"]
    return {"bounds": list(zip(starts, ends, params["strides"] or [1] * len(starts), strict=True))}


def _gather(params: Any, equation: Any) -> dict[str, Any]:
    numbers = params["dimension_numbers"]
    fills = "FILL" in str(params["mode"])
    fill = params["fill_value"]
    if fills and fill is None:
        fill = float("nan") if equation.outvars[0].aval.dtype.kind == "f" else 0
    return {
        "offsets": numbers.offset_dims,
        "dropped": [*numbers.collapsed_slice_dims, *numbers.operand_batching_dims],
        "axes": numbers.start_index_map,
        "batching": numbers.operand_batching_dims,
        "indices_batching": numbers.start_indices_batching_dims,
        "sizes": params["slice_sizes"],
        "fill": fill if fills else None,
    }


def _scatter(params: Any, equation: Any) -> dict[str, Any]:
    numbers, updates = params["dimension_numbers"], equation.invars[2].aval.shape
    dropped = [*numbers.inserted_window_dims, *numbers.operand_batching_dims]
    windows = iter([updates[axis] for axis in numbers.update_window_dims])
    rank = len(equation.invars[0].aval.shape)
    return {
        "adds": equation.primitive.name == "scatter-add",
        "offsets": numbers.update_window_dims,
        "axes": numbers.scatter_dims_to_operand_dims,
        "batching": numbers.operand_batching_dims,
        "indices_batching": numbers.scatter_indices_batching_dims,
        "sizes": [1 if axis in dropped else next(windows) for axis in range(rank)],
    }


def _dot(params: Any, equation: Any) -> dict[str, Any]:
    contract, batch = params["dimension_numbers"]
    return {"contract": contract, "batch": batch}


_SETTINGS: dict[str, Callable[[Any, Any], dict[str, Any]]] = {
    "argmax": lambda params, equation: {"axis": params["axes"][0]},
    "argmin": lambda params, equation: {"axis": params["axes"][0]},
    "bitcast_convert_type": lambda params, equation: {"dtype": str(params["new_dtype"])},
    "broadcast_in_dim": lambda params, equation: {
        "shape": params["shape"],
        "axes": params["broadcast_dimensions"],
    },
    "concatenate": lambda params, equation: {"axis": params["dimension"]},
    "convert_element_type": lambda params, equation: {"dtype": str(params["new_dtype"])},
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "stack"), _axis),
    "dot_general": _dot,
    "dynamic_slice": lambda params, equation: {"sizes": params["slice_sizes"]},
    "gather": _gather,
    "integer_pow": lambda params, equation: {"power": params["y"]},
    "iota": lambda params, equation: {"shape": params["shape"], "axis": params["dimension"]},
    "pad": lambda params, equation: {"pad": params["padding_config"]},
    **{f"reduce_{name}": _axes for name in ("and", "max", "min", "or", "prod", "sum")},
    **dict.fromkeys(("reshape", "squeeze"), _shape),
    "rev": lambda params, equation: {"axes": params["dimensions"]},
    **dict.fromkeys(("scatter", "scatter-add"), _scatter),
    "slice": _bounds,
    "sort": lambda params, equation: {"axis": params["dimension"], "keys": params["num_keys"]},
    "split": lambda params, equation: {"axis": params["axis"], "sizes": params["sizes"]},
    "transpose": lambda params, equation: {"axes": params["permutation"]},
}
"""What operations need besides their arrays, as `portable.operations` reads it."""
