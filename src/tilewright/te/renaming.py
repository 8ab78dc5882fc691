"""The names in a computation: reading them, and the same computation under others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.te.expr import Axis, Expr, Read, Reduce, Var
from tilewright.te.tensor import Tensor
from tilewright.te.transform import replace_reads, substitute


def names_in(tensor: Tensor) -> tuple[str, ...]:
    """The tensor's own name, then those of its axes, then those of the axes that it reduces over.

    >>> from tilewright import te
    >>> A, k = te.placeholder((4, 8), name="A"), te.reduce_axis(8, name="k")
    >>> names_in(te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="S"))
    ('S', 'i', 'k')
    """
    over = tensor.body.axes if isinstance(tensor.body, Reduce) else ()
    return (tensor.name, *(axis.name for axis in (*tensor.axes, *over)))


def renamed(tensor: Tensor, names: Sequence[str], made: Mapping[Tensor, Tensor]) -> Tensor:
    """The tensor under other names, in the order of `names_in`; `made` has those that it reads, renamed already."""
    own, *axis_names = names
    if tensor.body is None:
        return Tensor(own, tensor.shape, tensor.dtype, is_constant=tensor.is_constant)
    body = tensor.body
    old = (*tensor.axes, *body.axes) if isinstance(body, Reduce) else tensor.axes
    new = [Axis("int64", name, axis.extent, axis.is_reduce) for name, axis in zip(axis_names, old, strict=True)]
    values: dict[Var, Expr] = dict(zip(old, new, strict=True))
    axes, over = tuple(new[: tensor.ndim]), tuple(new[tensor.ndim :])
    if isinstance(body, Reduce):
        body = Reduce(body.dtype, body.op, body.values, over)
    body = replace_reads(substitute(body, values), lambda read: Read(read.dtype, made[read.tensor], read.indices))
    return Tensor(own, tensor.shape, tensor.dtype, axes, body)
