"""Small models of which each file has other parts: kernels, views, fallbacks, subgraphs, strings and element types."""

from __future__ import annotations

_HEAD = '<ir_version: 8, opset_import: ["" : 20]>'

MODELS = {
    # Weights in panels, values in the arena that take each other's place, a view at the end, and an output twice.
    "chain": f"""{_HEAD} chain (float[4, 8] x) => (float[32] y, float[4, 8] d, float[32] z)
<float[8, 8] w = {{{", ".join(str(n % 7 - 3) for n in range(64))}}}, int64[1] s = {{32}}>
{{
    a = MatMul(x, w)
    b = Softmax(a)
    c = MatMul(b, w)
    d = Add(c, x)
    e = LayerNormalization(d, w0)
    f = MatMul(e, w)
    y = Reshape(f, s)
    z = Identity(y)
}}""".replace("int64[1] s", "float[8] w0 = {1, 2, 3, 4, 5, 6, 7, 8}, int64[1] s"),
    # Kernels before and after nodes that have none; a type that only a run tells; a constant as an operand.
    "mixed": f"""{_HEAD} mixed (float[3, 3] x, string[2] t) => (float[1] y, int64[2, n] places, string[2] u, float[2] k)
<string[2] more = {{"a", "bc"}}, float[2] k0 = {{1, 2}}>
{{
    a = Relu(x)
    b = Det(a)
    c = Unsqueeze(b, zero)
    y = Exp(c)
    places = NonZero(a)
    u = StringConcat(t, more)
    k = Identity(k0)
}}""".replace("float[2] k0", "int64[1] zero = {0}, float[2] k0"),
    # Indices that are data, and an element type for each kernel.
    "types": f"""{_HEAD} types (bfloat16[2, 3] x, int64[4] i, bool[4, 3] m, uint8[4, 3] q, float16[3] h, double[3] d)
    => (bfloat16[4, 3] g, float[4, 3] y, double[3] e, int32[4, 3] r, int8[4, 3] v)
<int64[2] rows = {{1, 0}}, bfloat16[3] w = {{1, 2, 3}}, float[4, 3] other = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}>
{{
    a = Gather(x, rows)
    b = Mul(a, w)
    g = Gather(b, i)
    c = Cast <to = 1> (g)
    y = Where(m, c, other)
    f = Cast <to = 11> (h)
    e = Add(f, d)
    r = Cast <to = 6> (q)
    v = Cast <to = 3> (q)
}}""",
    # A node with subgraphs that read values around it, and an optional operand that is left out.
    "branches": f"""{_HEAD} branches (float[2, 3] x, bool c) => (float[2, 3] y, float[2, 3] z)
{{
    a = Neg(x)
    b = If (c) <then_branch = then () => (float[2, 3] p) {{ p = Add(a, x) }},
                else_branch = other () => (float[2, 3] q) {{ q = Mul(a, x) }}>
    y = Abs(b)
    z = Clip(b, , top)
}}""".replace("=> (float[2, 3] y, float[2, 3] z)\n", "=> (float[2, 3] y, float[2, 3] z)\n<float top = {2.0}>\n"),
}
"""ONNX text by name."""
