"""A task as JSON, and back: what is computed, under its own names, as data that outlives the program that made it.

The form is a flat list of nodes. A node is its kind and its arguments, and refers to earlier nodes by their positions:
what is shared is written once, and a deep expression is no deep text.

    {"version": 1, "name": "twice", "inputs": [0], "outputs": [5],
     "nodes": [["placeholder", "A", "float32", [8], false],
               ["axis", "i", 8],
               ["read", 0, [1]],
               ["const", "float32", 2.0],
               ["binary", "mul", 2, 3],
               ["compute", "B", [1], 4]]}

What is read is checked as what is written in Python is, and its size is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from reprlib import repr as shown
from typing import Any, TypeAlias, TypeVar

from tilewright.errors import ExpressionError
from tilewright.te.check import MAX_DEPTH
from tilewright.te.dtype import DTYPES, check_dtype, is_float
from tilewright.te.expr import (
    Axis,
    Binary,
    Cast,
    Const,
    Expr,
    Read,
    Reduce,
    Select,
    Unary,
    binary,
    constant,
    reduce,
    select,
    unary,
)
from tilewright.te.structure import topological_order
from tilewright.te.task import Task
from tilewright.te.tensor import Tensor, computed, placeholder, reduce_axis, spatial_axis
from tilewright.te.transform import children, operands_first

VERSION = 1
MAX_NODES = 50_000
_FIELDS = ("version", "name", "inputs", "outputs", "nodes")
_MOST_CHARACTERS = 300

Node: TypeAlias = "Tensor | Expr"
_Kind = TypeVar("_Kind", Tensor, Axis, Expr)


def task_to_json(task: Task) -> dict[str, Any]:
    """The task as JSON; ExpressionError where it is too large for that."""
    writer = _Writer()
    for tensor in (*task.inputs, *topological_order(task.outputs)):
        writer.add_tensor(tensor)
    inputs, outputs = writer.at(task.inputs), writer.at(task.outputs)
    return dict(zip(_FIELDS, (VERSION, task.name, inputs, outputs, writer.nodes), strict=True))


def task_from_json(data: object) -> Task:
    """The task that `task_to_json` wrote; ExpressionError says what of other JSON is wrong, and where."""
    version, name, inputs, outputs, nodes = _fields(data)
    if version != VERSION:
        raise ExpressionError(
            f"the JSON of the task is of version {shown(version)}, and this tilewright reads version {VERSION}; "
            "use a newer one"
        )
    if not isinstance(nodes, list) or len(nodes) > MAX_NODES:
        raise ExpressionError(f"the nodes of a task are a list of {MAX_NODES} at most, got {shown(nodes)}")
    reader = _Reader()
    for node in nodes:
        reader.add(node)
    return Task(reader.several(inputs, Tensor), reader.several(outputs, Tensor), name)


def _fields(data: object) -> tuple[Any, ...]:
    if not isinstance(data, Mapping) or set(data) != set(_FIELDS):
        raise ExpressionError(f"the JSON of a task is an object with {', '.join(_FIELDS)}, got {shown(data)}")
    return tuple(data[name] for name in _FIELDS)


class _Depths:
    """How many expressions stand in each other; more than `MAX_DEPTH` is an error."""

    def __init__(self) -> None:
        self._depth: dict[Expr, int] = {}

    def add(self, e: Expr) -> None:
        """Called for the operands first."""
        depth = self._depth[e] = 1 + max((self._depth[x] for x in children(e)), default=0)
        if depth > MAX_DEPTH:
            raise ExpressionError(
                f"an expression that is written as JSON is at most {MAX_DEPTH} deep; give a part of it a compute of "
                "its own"
            )


class _Writer:
    """Writes each tensor and each expression once, after what it refers to."""

    def __init__(self) -> None:
        self.nodes: list[list[Any]] = []
        self._positions: dict[Node, int] = {}
        self._depths = _Depths()

    def at(self, nodes: Iterable[Node]) -> list[int]:
        return [self._positions[node] for node in nodes]

    def add_tensor(self, tensor: Tensor) -> None:
        if tensor in self._positions:
            return
        if tensor.body is None:
            shape = list(tensor.shape)
            self._add(tensor, ["placeholder", tensor.name, tensor.dtype, shape, tensor.is_constant])
            return
        over = tensor.body.axes if isinstance(tensor.body, Reduce) else ()
        for e in (*tensor.axes, *over, *operands_first(tensor.body)):
            if e not in self._positions:
                self._depths.add(e)
                self._add(e, self._form(e))
        self._add(tensor, ["compute", tensor.name, self.at(tensor.axes), self._positions[tensor.body]])

    def _add(self, node: Node, form: list[Any]) -> None:
        if len(self.nodes) == MAX_NODES:
            raise ExpressionError(f"a task that is written as JSON has {MAX_NODES} nodes at most; cut it in two tasks")
        self._positions[node] = len(self.nodes)
        self.nodes.append(form)

    def _form(self, e: Expr) -> list[Any]:
        match e:
            case Axis():
                return ["reduce_axis" if e.is_reduce else "axis", e.name, e.extent]
            case Const():
                return ["const", e.dtype, _number_to_json(e)]
            case Unary():
                return ["unary", e.op, *self.at([e.x])]
            case Binary():
                return ["binary", e.op, *self.at([e.a, e.b])]
            case Select():
                return ["select", *self.at([e.cond, e.a, e.b])]
            case Cast():
                return ["cast", e.dtype, *self.at([e.x])]
            case Read():
                return ["read", *self.at([e.tensor]), self.at(e.indices)]
            case Reduce():
                return ["reduce", e.op, self.at(e.values), self.at(e.axes)]
        raise ExpressionError(f"a task holds axes and no other variables, got `{e}`")


class _Reader:
    """Makes the nodes, in their order."""

    def __init__(self) -> None:
        self._made: list[Node] = []
        self._depths = _Depths()
        self._axes_of_computes: set[Axis] = set()

    def add(self, form: object) -> None:
        try:
            node = self._make(form)
            if isinstance(node, Expr):
                self._depths.add(node)
        except ExpressionError as error:
            reason = str(error)[:_MOST_CHARACTERS]
            raise ExpressionError(f"node {len(self._made)} of the task is {shown(form)}: {reason}") from error
        self._made.append(node)

    def several(self, positions: object, kind: type[_Kind]) -> tuple[_Kind, ...]:
        """The nodes at the positions, each of which must be of that kind."""
        if not isinstance(positions, list):
            raise ExpressionError(f"a list of positions of nodes was expected, got {shown(positions)}")
        return tuple(self._at(position, kind) for position in positions)

    def _at(self, position: object, kind: type[_Kind]) -> _Kind:
        if type(position) is not int or not 0 <= position < len(self._made):
            raise ExpressionError(f"the position of an earlier node was expected, got {shown(position)}")
        node = self._made[position]
        if not isinstance(node, kind):
            raise ExpressionError(f"node {position} must be of the kind {kind.__name__}, got {type(node).__name__}")
        return node

    def _make(self, form: object) -> Node:
        match form:
            case ["placeholder", str(name), str(dtype), list(shape), bool(is_constant)]:
                return placeholder(shape, dtype, name, constant=is_constant)
            case ["compute", str(name), axes, body]:
                return self._compute(name, self.several(axes, Axis), self._at(body, Expr))
            case ["axis", str(name), int(extent)]:
                return spatial_axis(extent, name)
            case ["reduce_axis", str(name), int(extent)]:
                return reduce_axis(extent, name)
            case ["const", str(dtype), value]:
                return _constant(value, check_dtype(dtype))
            case ["unary", str(op), x]:
                return unary(op, self._at(x, Expr))
            case ["binary", str(op), *operands]:
                return binary(op, *self._alike(operands))
            case ["select", cond, *operands]:
                return select(self._at(cond, Expr), *self._alike(operands))
            case ["cast", str(dtype), x]:
                return Cast(check_dtype(dtype), self._at(x, Expr))
            case ["read", tensor, indices]:
                return self._read(self._at(tensor, Tensor), self.several(indices, Expr))
            case ["reduce", str(op), values, axes]:
                return reduce(op, self.several(values, Expr), self.several(axes, Axis))
        raise ExpressionError("it is no node: its kind is unknown, or it has other arguments")

    def _alike(self, operands: list[object]) -> tuple[Expr, Expr]:
        """Two operands, which are of one type already: a cast is a node of its own."""
        exprs = self.several(operands, Expr)
        if len(exprs) != 2 or exprs[0].dtype != exprs[1].dtype:
            raise ExpressionError(f"two operands of one type were expected, got {[e.dtype for e in exprs]}")
        return exprs[0], exprs[1]

    def _read(self, tensor: Tensor, indices: tuple[Expr, ...]) -> Expr:
        """Not `tensor[indices]`: where a select guards it, a pass over a graph may leave a constant that is outside."""
        if [index.dtype for index in indices] != ["int64"] * tensor.ndim:
            dtypes = ", ".join(index.dtype for index in indices)
            raise ExpressionError(f"tensor {tensor.name} takes {tensor.ndim} indices of type int64, got ({dtypes})")
        return Read(tensor.dtype, tensor, indices)

    def _compute(self, name: str, axes: tuple[Axis, ...], body: Expr) -> Tensor:
        if len(set(axes)) != len(axes) or any(axis.is_reduce or axis in self._axes_of_computes for axis in axes):
            raise ExpressionError("the axes of a compute are its own, each once, and none is reduced over")
        self._axes_of_computes.update(axes)
        return computed(name, axes, body)


def _number_to_json(e: Const) -> int | float | bool | str:
    """JSON has numbers that are finite alone."""
    if not is_float(e.dtype):
        return bool(e.value) if e.dtype == "bool" else int(e.value)
    number = float(e.value)
    return number if math.isfinite(number) else str(number)


def _constant(value: object, dtype: str) -> Const:
    kind = DTYPES[dtype].kind
    if kind == "float" and value in ("nan", "inf", "-inf"):
        return constant(float(str(value)), dtype)
    if isinstance(value, bool) != (kind == "bool") or not isinstance(value, int | float):
        raise ExpressionError(f"{shown(value)} is no number of type {dtype}")
    return constant(value, dtype)
