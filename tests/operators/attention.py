"""Attention as the partition gives it to the space: one task from queries, keys, values and a mask."""

from __future__ import annotations

from tilewright import te
from tilewright.operators import OWN, Call, Node, express
from tilewright.operators.softmax import ATTENTION
from tilewright.partition.stages import merge
from tilewright.te import Expr, Task


def attention(
    batch: int,
    heads: int,
    num_queries: int,
    num_keys: int,
    depth: int,
    size: int,
    *,
    is_causal: bool = False,
    heads_last: bool = True,
    shared_values: bool = False,
    transposed_keys: bool = False,
) -> Task:
    """Queries are [batch, query, head, depth] and so on, as transpositions that a kernel does in passing leave them.

    Keys may be [batch, head, depth, key], and values may be those of all heads.
    """
    Q = te.placeholder((batch, num_queries, heads, depth), name="Q")
    keys = (batch, heads, depth, num_keys) if transposed_keys else (batch, num_keys, heads, depth)
    K = te.placeholder(keys, name="K")
    V = te.placeholder((batch, 1 if shared_values else heads, num_keys, size), name="V")
    mask = te.placeholder((batch, 1, 1, num_keys), name="mask")
    r = te.reduce_axis(depth, "r")

    def product(b: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        return te.sum(Q[b, i, h, r] * (K[b, h, r, j] if transposed_keys else K[b, j, h, r]), axis=r)

    scores = te.compute((batch, heads, num_queries, num_keys), product, name="scores")

    def masked(b: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        value = scores[b, h, i, j] * 0.125 + mask[b, 0, 0, j]
        return te.select(j <= i, value, te.constant(-1e9, "float32")) if is_causal else value

    visible = te.compute(scores.shape, masked, name="visible")
    call = Call(Node(ATTENTION, ("x", "v"), ("y",), domain=OWN), [visible, V], [None, None])
    (weighted,) = express(call)
    result = weighted
    if heads_last:
        heads_after = (batch, num_queries, heads, size)
        (result,) = merge([te.compute(heads_after, lambda b, i, h, d: weighted[b, h, i, d], name="attention")])
    return Task([Q, K, V, mask], result)
