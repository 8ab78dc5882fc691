"""Small models of which each file has other parts: kernels, views, fallbacks, subgraphs, strings and element types."""

from __future__ import annotations

# Packed weights, values in the arena that take each other's place, a view at the end, and an output that is two.
_CHAIN = """
<ir_version: 8, opset_import: ["" : 20]>
chain (float[4, 8] x) => (float[32] y, float[4, 8] d, float[32] z)
<
    float[8, 4] w = {1, -2, 3, 0, 2, 1, 0, 3, 0, 2, -3, 1, 1, 1, 0, 2, 3, 1, 2, 0, 1, 0, 1, 2, -2, 1, 0, 3, 1, 2, 1, 0},
    float[8] scale = {1, 2, 3, 4, 5, 6, 7, 8},
    int64[1] flat = {32}
>
{
    a = MatMul(x, w)
    b = Softmax(a)
    v = Transpose <perm = [1, 0]> (w)
    c = MatMul(b, v)
    d = Add(c, x)
    e = LayerNormalization(d, scale)
    f = MatMul(e, w)
    g = MatMul(f, v)
    y = Reshape(g, flat)
    z = Identity(y)
}
"""

# Kernels before and after nodes that have none; a type that only a run tells; constants as operands and outputs.
_MIXED = """
<ir_version: 8, opset_import: ["" : 20]>
mixed (float[3, 3] x, string[2] t) => (float[1] y, int64[2, n] places, string[2] u, float[2] k)
<string[2] more = {"a", "bc"}, float[2] known = {1, 2}, int64[1] zero = {0}>
{
    a = Relu(x)
    b = Det(a)
    c = Unsqueeze(b, zero)
    y = Exp(c)
    places = NonZero(a)
    u = StringConcat(t, more)
    k = Identity(known)
}
"""

# Indices that are data, and another element type in each kernel.
_TYPES = """
<ir_version: 8, opset_import: ["" : 20]>
types (bfloat16[2, 3] x, int64[4] i, bool[4, 3] m, uint8[4, 3] q, float16[3] h, double[3] d)
    => (bfloat16[4, 3] g, float[4, 3] y, double[3] e, int32[4, 3] r, int8[4, 3] v)
<
    int64[2] rows = {1, 0},
    bfloat16[3] w = {1, 2, 3},
    float[4, 3] other = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
>
{
    a = Gather(x, rows)
    b = Mul(a, w)
    g = Gather(b, i)
    c = Cast <to = 1> (g)
    y = Where(m, c, other)
    f = Cast <to = 11> (h)
    e = Add(f, d)
    r = Cast <to = 6> (q)
    v = Cast <to = 3> (q)
}
"""

# A node whose subgraphs read values around it, and one with an operand that is left out.
_BRANCHES = """
<ir_version: 8, opset_import: ["" : 20]>
branches (float[2, 3] x, bool c) => (float[2, 3] y, float[2, 3] z)
<float top = {2}>
{
    a = Neg(x)
    b = If (c) <
        then_branch = then () => (float[2, 3] p) { p = Add(a, x) },
        else_branch = other () => (float[2, 3] q) { q = Mul(a, x) }
    >
    y = Abs(b)
    z = Clip(b, , top)
}
"""

MODELS = (_CHAIN, _MIXED, _TYPES, _BRANCHES)
"""As ONNX text."""
