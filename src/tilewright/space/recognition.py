"""Which operator a task computes, told by the structure of its heaviest reduction.

Names of tasks and tensors tell nothing: whatever is fused to a convolution, and whoever wrote it, it is a convolution.
"""

from __future__ import annotations

import math

from tilewright.space.analysis import longer
from tilewright.te import Axis, Binary, Cast, Expr, Read, Reduce, Task, Tensor, visit

OPERATORS = ("matmul", "batch_matmul", "conv1d", "conv2d", "conv3d", "depthwise")
_CONVOLUTIONS = {1: "conv1d", 2: "conv2d", 3: "conv3d"}


def operator_of(task: Task) -> str | None:
    """One of `OPERATORS`; None where the task's heaviest reduction is something else, or there is none.

    A sum of products of two tensors: a convolution adds an axis of the result and one of the sum in an index, in as
    many indices as it has dimensions, and sums over one axis more; a depthwise one sums over nothing else. A product
    has no such index, and where an axis of the result is in both factors it is one of a batch.

    >>> from tilewright import te
    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 5), name="B")
    >>> k = te.reduce_axis(8, name="k")
    >>> C = te.compute((4, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    >>> operator_of(Task([A, B], te.compute((4, 5), lambda i, j: te.tanh(C[i, j]), name="D")))
    'matmul'
    """
    stage = main_reduction(task)
    reads = None if stage is None else _factors(stage)
    if stage is None or reads is None:
        return None
    assert isinstance(stage.body, Reduce)
    windows = [index for read in reads for index in read.indices if len({a.is_reduce for a in _axes(index)}) == 2]
    first, second = ({axis for index in read.indices for axis in _axes(index)} for read in reads)
    shared = [axis for axis in longer(stage.axes) if axis in first & second]
    if not windows:
        num_own = len(stage.axes) - len(shared)
        return None if num_own < 2 else "batch_matmul" if shared else "matmul"
    if len(stage.body.axes) == len(windows):
        return "depthwise" if len(windows) == 2 else None
    is_plain = not shared and len(stage.body.axes) == len(windows) + 1
    return _CONVOLUTIONS.get(len(windows)) if is_plain else None


def main_reduction(task: Task) -> Tensor | None:
    """The reduction that runs over the most points; None where there is none."""
    reductions = [stage for stage in task.stages if isinstance(stage.body, Reduce)]
    return max(reductions, key=_num_points, default=None)


def _num_points(stage: Tensor) -> int:
    assert isinstance(stage.body, Reduce)
    return math.prod(axis.extent for axis in (*stage.axes, *stage.body.axes))


def _factors(stage: Tensor) -> tuple[Read, Read] | None:
    """The two reads of a sum of products."""
    assert isinstance(stage.body, Reduce)
    product = stage.body.values[0]
    if stage.body.op != "sum" or not isinstance(product, Binary) or product.op != "mul":
        return None
    a, b = _uncast(product.a), _uncast(product.b)
    return (a, b) if isinstance(a, Read) and isinstance(b, Read) else None


def _uncast(e: Expr) -> Expr:
    return _uncast(e.x) if isinstance(e, Cast) else e


def _axes(index: Expr) -> list[Axis]:
    found: list[Axis] = []
    visit(index, lambda e: found.append(e) if isinstance(e, Axis) else None)
    return found
