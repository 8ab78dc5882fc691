"""Copies that turn rows into columns: square blocks are loaded by rows, turned in registers, and stored by columns.

    for d in 64:
      vectorize j in 32:
        P[d, j] = K[j, d]

Element by element this is a load and an insertion for each; a block of 16 by 16 takes 16 loads, 64 shuffles and 16
stores.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.ir import Buffer, For, Load, Store
from tilewright.schedule import VECTORIZE
from tilewright.target import Target
from tilewright.te import Var
from tilewright.te.index import FromMemory, Linear, variables

_DTYPES = ("float32", "float64", "int32", "int64")
# More blocks side by side than this, all written out, would be long code for little.
_MAX_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class TransposedCopy:
    """A loop over rows of the copy, in vectors of columns. `size` is the edge of a block."""

    loop: For
    lanes: For
    store: Store
    load: Load
    size: int
    column_step: int  # elements from one vector that is stored to the next


def find_transposed_copy(loop: For, target: Target) -> TransposedCopy | None:
    """The copy that the loop is; None where it does something else, or its vectors do not fill blocks."""
    lanes = loop.body
    if not isinstance(lanes, For) or lanes.kind != VECTORIZE or not isinstance(lanes.body, Store):
        return None
    store = lanes.body
    load = store.value
    if not isinstance(load, Load) or load.buffer.dtype != store.buffer.dtype or load.buffer.dtype not in _DTYPES:
        return None
    size = target.lanes(load.buffer.dtype)
    is_filled = loop.extent >= size and lanes.extent % size == 0 and lanes.extent <= _MAX_BLOCKS * size
    if size < 4 or size & (size - 1) or not is_filled:
        return None
    read = _steps(load.buffer, load.indices, loop.var, lanes.var)
    written = _steps(store.buffer, store.indices, loop.var, lanes.var)
    if read is None or written is None or read[0] != 1 or read[1] in (0, 1) or written[1] != 1:
        return None
    return TransposedCopy(loop, lanes, store, load, size, written[0])


def _steps(buffer: Buffer, indices: tuple[Linear, ...], *moved: Var) -> tuple[int, ...] | None:
    """Elements that an access moves with each of the variables; None where one is in more than a linear term."""
    steps = [0] * len(moved)
    for form, stride in zip(indices, buffer.strides, strict=True):
        others = Linear({atom: c for atom, c in form.terms.items() if not isinstance(atom, Var)}, 0)
        is_read = any(isinstance(atom, FromMemory) for atom in others.terms)
        if is_read or not set(moved).isdisjoint(variables(others)):
            return None
        for n, var in enumerate(moved):
            steps[n] += stride * form.terms.get(var, 0)
    return tuple(steps)


def transpose(builder: FunctionBuilder, rows: list[Value]) -> list[Value]:
    """The columns of a square block, by exchanging quarters of ever smaller blocks."""
    size = len(rows)
    half = size // 2
    while half:
        exchanged = list(rows)
        for n in range(size):
            if not n & half:
                first, second = rows[n], rows[n + half]
                left = [size + c - half if c & half else c for c in range(size)]
                right = [size + c if c & half else c + half for c in range(size)]
                exchanged[n], exchanged[n + half] = (builder.shuffle(first, second, side) for side in (left, right))
        rows = exchanged
        half //= 2
    return rows
