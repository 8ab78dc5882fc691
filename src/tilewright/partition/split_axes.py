"""Results whose places are divided: an axis y that a reduction is read at as y // c and y % c becomes two.

A convolution in groups has an axis of groups and one of channels, a transposed convolution one of phases; what follows
reads them at f // c and f % c, which no tile of f can follow. In memory, [.., f] and [.., f // c, f % c] are the same.
So the result is computed under the finer shape, and so are the inputs that it is computed from; only views remain.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.te import (
    Axis,
    Binary,
    Const,
    Expr,
    Read,
    Reduce,
    Tensor,
    collect_reads,
    replace_reads,
    rewrite,
    substitute,
    topological_order,
    visit,
)


def split_axes(output: Tensor) -> tuple[Tensor, dict[Tensor, Tensor]]:
    """The output under a finer shape, and for each input whose shape is finer too, the new one."""
    replaced: dict[Tensor, Tensor] = {}
    for axis in output.axes:
        factor = _factor(output, axis)
        if factor is None:
            continue
        output, new = _split(output, axis, factor)
        replaced = {old: new.get(now, now) for old, now in replaced.items()} | {
            old: now for old, now in new.items() if old not in replaced.values()
        }
    return output, replaced


def _factor(output: Tensor, axis: Axis) -> int | None:
    """The number that the axis is divided by to read a reduction."""
    if output.body is None or isinstance(output.body, Reduce):
        return None
    found: set[int] = set()
    for read in collect_reads(output.body):
        if isinstance(read.tensor.body, Reduce):
            for index in read.indices:
                visit(index, lambda e: found.add(_divisor(e, axis)))
    found.discard(0)
    if len(found) != 1:
        return None
    factor = found.pop()
    return factor if factor > 1 and axis.extent % factor == 0 and axis.extent > factor else None


def _divisor(e: Expr, axis: Axis) -> int:
    """c of `axis // c` and `axis % c`, else 0."""
    is_division = isinstance(e, Binary) and e.op in ("floordiv", "mod") and e.a is axis and isinstance(e.b, Const)
    return int(e.b.value) if is_division and isinstance(e, Binary) and isinstance(e.b, Const) else 0


def _split(output: Tensor, axis: Axis, factor: int) -> tuple[Tensor, dict[Tensor, Tensor]]:
    assert output.body is not None
    outer = Axis("int64", f"{axis.name}_0", axis.extent // factor, False)
    inner = Axis("int64", f"{axis.name}_1", factor, False)

    def divided(e: Expr) -> Expr | None:
        if _divisor(e, axis) != factor or not isinstance(e, Binary):
            return None
        return outer if e.op == "floordiv" else inner

    inputs = {tensor: _split_input(output, tensor, axis, factor) for tensor in _inputs_at(output, axis)}

    def finer(read: Read) -> Expr | None:
        new = inputs.get(read.tensor)
        if new is None:
            return None
        at = read.indices.index(axis)
        return Read(new.dtype, new, (*read.indices[:at], outer, inner, *read.indices[at + 1 :]))

    body = rewrite(replace_reads(output.body, finer), divided)
    body = substitute(body, {axis: outer * factor + inner})
    at = output.axes.index(axis)
    axes = (*output.axes[:at], outer, inner, *output.axes[at + 1 :])
    return Tensor(output.name, tuple(a.extent for a in axes), output.dtype, axes, body), inputs


def _inputs_at(output: Tensor, axis: Axis) -> list[Tensor]:
    """The inputs that are read by the output alone, always with the axis as the same index."""
    assert output.body is not None
    others = [t for t in topological_order([output]) if t.body is not None and t is not output]
    elsewhere = {read.tensor for t in others if t.body is not None for read in collect_reads(t.body)}
    places: dict[Tensor, set[int]] = {}
    for read in collect_reads(output.body):
        if read.tensor.is_placeholder and read.tensor not in elsewhere:
            at = [d for d, index in enumerate(read.indices) if index is axis]
            whole = len(at) == 1 and read.tensor.shape[at[0]] == axis.extent
            places.setdefault(read.tensor, set()).add(at[0] if whole else -1)
    return [tensor for tensor, found in places.items() if len(found) == 1 and -1 not in found]


def _split_input(output: Tensor, tensor: Tensor, axis: Axis, factor: int) -> Tensor:
    assert output.body is not None
    read = next(read for read in collect_reads(output.body) if read.tensor is tensor)
    at = read.indices.index(axis)
    shape: Sequence[int] = (*tensor.shape[:at], axis.extent // factor, factor, *tensor.shape[at + 1 :])
    return Tensor(tensor.name, tuple(shape), tensor.dtype, is_constant=tensor.is_constant)
