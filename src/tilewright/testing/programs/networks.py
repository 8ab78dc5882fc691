"""Programs of several stages as networks have them: products of any operands, of one operand with itself, side by side.

Many of their extents are 1, and what is an operand of one stage may be an output too.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import te
from tilewright.te import Axis, Expr, Task, Tensor
from tilewright.testing.programs.draw import Draw

_MOST_STAGES = 5
_SMALL = 13  # integers are taken modulo this before they are multiplied, so that no product overflows


def einsum(draw: Draw) -> Task:
    """A sum of products of two or three operands with any axes; two of the operands may be the same tensor."""
    extents = [_extent(draw, 33) for _ in range(draw.pick(2, 3, 4, 5))]
    dtype = draw.name("float32", "float32", "float64", "float16", "int8")
    operands = [_some(draw, len(extents)) for _ in range(draw.pick(2, 2, 3))]
    results = _some(draw, len(extents))
    tensors: dict[tuple[int, ...], Tensor] = {}
    chosen: list[Tensor] = []
    for operand in operands:
        shape = tuple(extents[a] for a in operand)
        if shape not in tensors or draw.chance(0.3):
            tensors[shape] = te.placeholder(shape, dtype, f"X{len(chosen)}", constant=draw.chance(0.3))
        chosen.append(tensors[shape])
    reduced = [a for a in range(len(extents)) if a not in results and any(a in operand for operand in operands)]
    axes = {a: te.reduce_axis(extents[a], f"r{a}") for a in reduced}

    def product(*spatial: Axis) -> Expr:
        at: dict[int, Expr] = {**axes, **dict(zip(results, spatial, strict=True))}
        value = _factor(chosen[0], [at[a] for a in operands[0]])
        for tensor, operand in zip(chosen[1:], operands[1:], strict=True):
            value = value * _factor(tensor, [at[a] for a in operand])
        return te.sum(value, axis=list(axes.values())) if axes else value

    Y = te.compute(tuple(extents[a] for a in results), product, "Y")
    inputs = list(dict.fromkeys(chosen))
    if draw.chance():
        return Task(inputs, Y, "einsum")
    Z = te.compute(Y.shape, lambda *i: te.maximum(Y[i], 0), "Z")
    return Task(inputs, [Z, Y] if draw.chance(0.3) else Z, "einsum")


def gated(draw: Draw) -> Task:
    """Two or three products side by side into one stage, such as the gates of a network."""
    batch, n, m, length = (_extent(draw, 17) for _ in range(4))
    shape = (batch, n, m) if draw.chance() else (n, m)
    dtype = draw.name("float32", "float32", "float64")
    X = te.placeholder((*shape[:-1], length), dtype, "X")
    inputs, products = [X], []
    for p in range(draw.pick(2, 2, 3)):
        W = te.placeholder((length, m), dtype, f"W{p}", constant=draw.chance(0.7))
        inputs.append(W)
        products.append(_product(X, W, shape, length, f"P{p}"))
    gate = te.compute(shape, lambda *i: te.sigmoid(products[0][i]), "gate")

    def joined(*i: Axis) -> Expr:
        value = gate[i] * products[1][i]
        for other in (products[0] if draw.chance() else products[1], *products[2:]):
            value = value + other[i]
        return value

    Y = te.compute(shape, joined, "Y")
    outputs = [Y, products[1]] if draw.chance(0.3) else Y
    return Task(inputs, outputs, "gated")


def _product(X: Tensor, W: Tensor, shape: tuple[int, ...], length: int, name: str) -> Tensor:
    k = te.reduce_axis(length, "k")
    return te.compute(shape, lambda *i: te.sum(X[(*i[:-1], k)] * W[k, i[-1]], axis=k), name)


def network(draw: Draw) -> Task:
    """Some stages, each of any tensors before it; one or more of them are outputs."""
    dtype = draw.name("float32", "float32", "float64", "int32")
    rank = draw.pick(1, 2, 3, 4)
    extents = tuple(_extent(draw, 17) for _ in range(rank))
    inputs = [te.placeholder(extents, dtype, "A"), te.placeholder(_with_ones(draw, extents), dtype, "B")]
    made: list[Tensor] = []
    for n in range(draw.pick(*range(2, _MOST_STAGES + 1))):
        made.append(_stage(draw, [*inputs, *made], f"S{n}"))
    read = [t for t in inputs if any(t is other for other in te.topological_order(made))]
    is_last = [t for t in made if not any(t in te.topological_order([s])[:-1] for s in made if s is not t)]
    outputs = [t for t in made if t in is_last or draw.chance(0.2)]
    return Task(read, outputs, "network")


def _stage(draw: Draw, known: Sequence[Tensor], name: str) -> Tensor:
    a = known[draw.pick(*range(len(known)))]
    kind = draw.pick(0, 0, 1, 2, 3, 4, 4, 4, 5)
    if kind == 0:
        partners = [t for t in known if len(t.shape) == len(a.shape) and _broadcasts(a, t)]
        return _elementwise(draw, a, partners[draw.pick(*range(len(partners)))], name)
    if kind == 1 and a.shape:
        return _reduction(draw, a, name)
    if kind == 2 and a.shape:
        turned = list(reversed(range(len(a.shape))))
        shape = tuple(a.shape[d] for d in turned)
        return te.compute(shape, lambda *i: a[tuple(i[d] for d in turned)] + 1, name)
    if kind == 3 and a.shape:
        return _running_sum(draw, a, name)
    if kind == 4 and len(a.shape) >= 2:
        partners = [t for t in known if t.shape == a.shape]
        return _matrix_product(draw, a, partners[draw.pick(*range(len(partners)))], name)
    if te.is_int(a.dtype):
        return te.compute(a.shape, lambda *i: te.maximum(a[i], 0) // 3, name)
    return te.compute(a.shape, lambda *i: te.tanh(a[i]), name)


def _elementwise(draw: Draw, a: Tensor, b: Tensor, name: str) -> Tensor:
    op = draw.pick(0, 1, 2)

    def body(*i: Axis) -> Expr:
        x, y = a[i], b[tuple(v if extent > 1 else 0 for v, extent in zip(i, b.shape, strict=True))]
        return (x + y, x - y, te.maximum(x, y))[op]

    return te.compute(a.shape, body, name)


def _reduction(draw: Draw, a: Tensor, name: str) -> Tensor:
    """Over some axes, which stay as 1; over all of them also to a single number."""
    over = _some(draw, len(a.shape)) or (len(a.shape) - 1,)
    axes = {d: te.reduce_axis(a.shape[d], f"r{d}") for d in sorted(over)}
    reduce = te.max if draw.chance(0.3) else te.sum
    keep = len(axes) < len(a.shape) or draw.chance()
    shape = tuple(1 if d in axes else extent for d, extent in enumerate(a.shape)) if keep else ()
    return te.compute(
        shape,
        lambda *i: reduce(
            a[tuple(axes[d] if d in axes else i[d] for d in range(len(a.shape)))], axis=list(axes.values())
        ),
        name,
    )


def _running_sum(draw: Draw, a: Tensor, name: str) -> Tensor:
    along = draw.pick(*range(len(a.shape)))
    k = te.reduce_axis(a.shape[along], "k")
    return te.compute(
        a.shape,
        lambda *i: te.sum(te.select(k <= i[along], a[(*i[:along], k, *i[along + 1 :])], 0), axis=k),
        name,
    )


def _matrix_product(draw: Draw, a: Tensor, b: Tensor, name: str) -> Tensor:
    """The product with the second one turned, of which it may be the first itself; square ones also without."""
    *batch, n, length = a.shape
    k = te.reduce_axis(length, "k")
    is_turned = n != length or draw.chance()
    scale: float | int = 1 if te.is_int(a.dtype) else 1.0 / length

    def body(*i: Axis) -> Expr:
        outer, row, column = i[:-2], i[-2], i[-1]
        right = (*outer, column, k) if is_turned else (*outer, k, column)
        return te.sum(_factor(a, [*outer, row, k]) * _factor(b, right) * scale, axis=k)

    return te.compute((*batch, n, n), body, name)


def _factor(tensor: Tensor, indices: Sequence[Expr]) -> Expr:
    """An element as it is multiplied."""
    value = tensor[tuple(indices)]
    if not te.is_int(tensor.dtype):
        return value
    return te.cast(value, "int32") % _SMALL


def _broadcasts(a: Tensor, b: Tensor) -> bool:
    return all(y in (x, 1) for x, y in zip(a.shape, b.shape, strict=True))


def _extent(draw: Draw, most: int) -> int:
    return 1 if draw.chance(0.3) else draw.extent(most)


def _with_ones(draw: Draw, extents: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if draw.chance(0.3) else extent for extent in extents)


def _some(draw: Draw, count: int) -> tuple[int, ...]:
    """Some of the numbers below `count`, in any order; seldom none."""
    order = [int(n) for n in draw.rng.permutation(count)]
    return tuple(order[: draw.pick(*range(count + 1))])
