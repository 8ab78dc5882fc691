"""A hash of what is computed, blind to names: the same computation under other names is the same task."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from tilewright.te.dtype import is_float
from tilewright.te.expr import Binary, Cast, Const, Expr, Read, Reduce, Select, Unary
from tilewright.te.tensor import Tensor
from tilewright.te.transform import children, collect_reads

_DIGITS = 32


def topological_order(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Every tensor the outputs need, producers first; the order depends on the computation alone."""
    order: list[Tensor] = []
    done: set[Tensor] = set()
    stack = [(t, False) for t in reversed(outputs)]
    while stack:
        tensor, expanded = stack.pop()
        if tensor in done:
            continue
        if expanded or tensor.body is None:
            done.add(tensor)
            order.append(tensor)
            continue
        stack.append((tensor, True))
        stack.extend((read.tensor, False) for read in reversed(collect_reads(tensor.body)))
    return order


def structural_hash(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str:
    """A hexadecimal digest that is equal for the same computation under other tensor and axis names.

    It differs with shapes, types, operators, constants, constant inputs, the order of inputs and outputs, and the
    way the computation is cut into stages, since a schedule of one does not apply to another.
    """
    number = _Numbering(inputs)
    for tensor in topological_order(outputs):
        number.add(tensor)
    text = repr((number.entries(), [number.tensors[t] for t in outputs]))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


class _Numbering:
    """Gives each distinct subexpression a number, so that a shared one is described once."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        self.tensors: dict[Tensor, int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        for tensor in inputs:
            self.add(tensor)

    def entries(self) -> list[tuple[object, ...]]:
        return list(self._numbers)

    def add(self, tensor: Tensor) -> None:
        if tensor in self.tensors:
            return
        position = len(self.tensors)
        head = ("tensor", position, tensor.shape, tensor.dtype, tensor.is_constant)
        if tensor.body is None:
            self.tensors[tensor] = self._intern(head)
            return
        memo = {id(axis): self._intern(("axis", d, axis.extent)) for d, axis in enumerate(tensor.axes)}
        if isinstance(tensor.body, Reduce):
            for d, axis in enumerate(tensor.body.axes):
                memo[id(axis)] = self._intern(("reduce axis", d, axis.extent))
        self.tensors[tensor] = self._intern((*head, self._expr(tensor.body, memo)))

    def _intern(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _expr(self, e: Expr, memo: dict[int, int]) -> int:
        known = memo.get(id(e))
        if known is None:
            operands = [self._expr(x, memo) for x in children(e)]
            known = memo[id(e)] = self._intern((type(e).__name__, e.dtype, self._detail(e), *operands))
        return known

    def _detail(self, e: Expr) -> object:
        """What distinguishes a node beyond its type and operands."""
        if isinstance(e, Unary | Binary):
            return e.op
        if isinstance(e, Read):
            return self.tensors[e.tensor]
        if isinstance(e, Const):
            return _number(e)
        if isinstance(e, Reduce):
            return (e.op, len(e.axes))
        assert isinstance(e, Select | Cast)
        return None


def _number(e: Const) -> str:
    """The exact value that a program computes with; half types compute in float32."""
    if not is_float(e.dtype):
        return str(e.value)
    with np.errstate(over="ignore"):
        return float(e.value if e.dtype == "float64" else np.float32(e.value)).hex()
