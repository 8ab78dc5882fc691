"""A task: one computation to compile or tune, given by its inputs and outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import ExpressionError
from tilewright.te.expr import DOT4, FLOAT_FUNCTIONS, Binary, Expr, Read, Reduce, Unary
from tilewright.te.structure import structural_hash, topological_order
from tilewright.te.tensor import Tensor
from tilewright.te.transform import children

_COUNTED = frozenset(
    ("add", "sub", "mul", "div", "floordiv", "mod", "pow", "max", "min", "neg", "abs", *FLOAT_FUNCTIONS)
)
_OPERATIONS_OF_DOT4 = 7


@dataclass(frozen=True, slots=True, init=False)
class Task:
    """The computation of `outputs` from `inputs`; a kernel takes its arrays in this order.

    >>> from tilewright import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> k = te.reduce_axis(8, name="k")
    >>> S = te.compute((4,), lambda i: te.sum(A[i, k] * A[i, k], axis=k), name="S")
    >>> Task([A], S).flop
    64.0
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    name: str
    stages: tuple[Tensor, ...] = field(repr=False, compare=False)
    """The computed tensors, producers before consumers."""
    _hash: str = field(repr=False, compare=False)

    def __init__(
        self, inputs: Tensor | Sequence[Tensor], outputs: Tensor | Sequence[Tensor], name: str = "task"
    ) -> None:
        ins, outs = _tensors("inputs", inputs), _tensors("outputs", outputs)
        _check_arguments(ins, outs)
        if not isinstance(name, str):
            raise ExpressionError(f"the name of a task is {name!r}; it must be a string")
        tensors = topological_order(outs)
        _check_inputs(ins, tensors)
        _check_names(tensors)
        set_field = object.__setattr__
        set_field(self, "inputs", ins)
        set_field(self, "outputs", outs)
        set_field(self, "name", name)
        set_field(self, "stages", tuple(t for t in tensors if t.body is not None))
        set_field(self, "_hash", "")

    @property
    def hash(self) -> str:
        """The structural hash: the same computation under other names has the same one."""
        if not self._hash:
            object.__setattr__(self, "_hash", structural_hash(self.inputs, self.outputs))
        return self._hash

    @property
    def constants(self) -> tuple[Tensor, ...]:
        """The inputs marked constant, such as weights."""
        return tuple(t for t in self.inputs if t.is_constant)

    @property
    def num_points(self) -> int:
        """How many points the stages run over, reductions included."""
        return sum(map(_num_points, self.stages))

    @property
    def flop(self) -> float:
        """Arithmetic operations on tensor elements, each counted as one; a reduction adds one an iteration.

        Indices, comparisons, selects and casts count nothing.
        """
        return float(sum(_stage_flop(stage) for stage in self.stages))

    def __reduce__(self) -> tuple[Any, ...]:
        """As JSON, which is flat: pickle calls itself for what reads something else, and Python allows a thousand."""
        try:
            return Task.from_json, (self.to_json(),)
        except ExpressionError:  # too large for that
            return Task, (self.inputs, self.outputs, self.name)

    def __copy__(self) -> Task:
        return self

    def __deepcopy__(self, memo: object) -> Task:
        return self

    def to_json(self) -> dict[str, Any]:
        """The task as JSON, from which `from_json` makes the same computation under the same names.

        >>> from tilewright import te
        >>> A = te.placeholder((4,), name="A")
        >>> task = Task([A], te.compute((4,), lambda i: A[i] * 2.0, name="B"))
        >>> Task.from_json(task.to_json()).hash == task.hash
        True
        """
        from tilewright.te.task_json import task_to_json

        return task_to_json(self)

    @staticmethod
    def from_json(data: object) -> Task:
        """The task that `to_json` wrote; ExpressionError says what of other JSON is wrong, and where."""
        from tilewright.te.task_json import task_from_json

        return task_from_json(data)


def _tensors(what: str, given: object) -> tuple[Tensor, ...]:
    if isinstance(given, Tensor):
        return (given,)
    if isinstance(given, str | Expr | Set | Mapping) or not isinstance(given, Iterable):  # a set has no order
        raise ExpressionError(f"the {what} of a task are a tensor or a list of tensors, got {given!r}")
    return tuple(given)


def _check_arguments(inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
    for what, tensors in (("input", inputs), ("output", outputs)):
        seen: set[Tensor] = set()
        for position, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise ExpressionError(f"{what} {position} of a task must be a tensor, got {tensor!r}")
            if tensor in seen:
                raise ExpressionError(f"tensor {tensor.name} is given twice as {what}; name each {what} once")
            seen.add(tensor)
    if not outputs:
        raise ExpressionError("a task needs at least one output; give a computed tensor")
    for tensor in inputs:
        if not tensor.is_placeholder:
            raise ExpressionError(f"input {tensor.name} is computed; the inputs of a task are placeholders")
    for tensor in outputs:
        if tensor.is_placeholder:
            raise ExpressionError(f"output {tensor.name} is a placeholder; the outputs of a task are computed tensors")


def _check_inputs(inputs: tuple[Tensor, ...], tensors: list[Tensor]) -> None:
    needed = {t: None for t in tensors if t.is_placeholder}
    given = set(inputs)
    for tensor in needed:
        if tensor not in given:
            raise ExpressionError(f"placeholder {tensor.name} is read but not among the inputs; add it to them")
    for tensor in inputs:
        if tensor not in needed:
            raise ExpressionError(f"input {tensor.name} is not read by any output; remove it from the inputs")


def _check_names(tensors: list[Tensor]) -> None:
    by_name: dict[str, Tensor] = {}
    for tensor in tensors:
        other = by_name.setdefault(tensor.name, tensor)
        if other is not tensor:
            raise ExpressionError(
                f"two tensors are called {tensor.name}: `{other}` and `{tensor}`; give each tensor its own name"
            )


def _stage_flop(stage: Tensor) -> int:
    body = stage.body
    assert body is not None
    if isinstance(body, Reduce):
        return _num_points(stage) * (1 + _operations(body.values[0]))
    return _num_points(stage) * _operations(body)


def _num_points(stage: Tensor) -> int:
    reduced = stage.body.axes if isinstance(stage.body, Reduce) else ()
    return math.prod(stage.shape) * math.prod(axis.extent for axis in reduced)


def _operations(body: Expr) -> int:
    """The arithmetic in `body` that touches elements; a shared node is computed, and counted, once."""
    count = 0
    touches: dict[int, bool] = {}

    def go(e: Expr) -> bool:
        nonlocal count
        known = touches.get(id(e))
        if known is not None:
            return known
        # Indices are addresses, not arithmetic on elements; every operand is walked, to count what it does.
        operands = [] if isinstance(e, Read) else [go(x) for x in children(e)]
        result = isinstance(e, Read) or any(operands)
        if result and isinstance(e, Binary | Unary):
            count += _OPERATIONS_OF_DOT4 if e.op == DOT4 else e.op in _COUNTED
        touches[id(e)] = result
        return result

    go(body)
    return count
