"""Sums of four products of bytes: the instructions for them, and the same from ordinary ones where there are none.

`dot4` of the words x and y is added to a sum. The bytes of x are unsigned, those of y signed: what x86 has an
instruction for (VNNI). None of the ways saturates, so that all give the same sum.
"""

from __future__ import annotations

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.target import Target

_BYTES = 4
_MADD = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}
_MADD_FEATURE = {4: None, 8: "avx2", 16: "avx512bw"}


def dot4(b: FunctionBuilder, target: Target, total: Value, x: Value, y: Value) -> Value:
    """`total` and the four products of bytes in each lane; all have the same lanes."""
    features = target.enabled_features
    if target.arch == "x86_64":
        if _has_vnni(features, x.lanes):
            return _call(b, f"x86.avx512.vpdpbusd.{32 * x.lanes}", total, x, y)
        if x.lanes in _MADD and _MADD_FEATURE[x.lanes] in (None, *features):
            return _by_pairs(b, total, x, y)
    if target.arch == "aarch64" and x.lanes == 4 and "i8mm" in features:
        return _neon(b, "usdot", total, x, y)
    if target.arch == "aarch64" and x.lanes == 4 and "dotprod" in features:
        return _signed(b, total, x, y)
    return _byte_by_byte(b, total, x, y)


def _has_vnni(features: frozenset[str], lanes: int) -> bool:
    if lanes == 16:
        return "avx512vnni" in features
    return lanes in (4, 8) and ("avxvnni" in features or {"avx512vnni", "avx512vl"} <= features)


def _call(b: FunctionBuilder, name: str, *arguments: Value) -> Value:
    """An intrinsic of one machine, which gives what its first argument is."""
    first, full = arguments[0], f"@llvm.{name}"
    b.declarations.setdefault(full, f"declare {first.type} {full}({', '.join(a.type for a in arguments)})")
    typed = ", ".join(argument.typed for argument in arguments)
    return b.op(f"call {first.type} {full}({typed})", first.dtype, first.lanes, max(a.depth for a in arguments))


def _as(b: FunctionBuilder, x: Value, dtype: str, lanes: int) -> Value:
    """The same bits as so many elements of another type."""
    wanted = Value("", dtype, lanes).type
    return b.op(f"bitcast {x.typed} to {wanted}", dtype, lanes, x.depth)


def _by_pairs(b: FunctionBuilder, total: Value, x: Value, y: Value) -> Value:
    """Even and odd bytes, widened to 16 bits where they stand, are multiplied and added in pairs."""
    lanes = 2 * x.lanes
    halves, signed = _as(b, x, "int16", lanes), _as(b, y, "int16", lanes)
    eight = b.const(8, "int16", lanes)
    even = (
        b.binary("and", halves, b.const(255, "int16", lanes)),
        b.binary("ashr", b.binary("shl", signed, eight), eight),
    )
    odd = b.binary("lshr", halves, eight), b.binary("ashr", signed, eight)
    for left, right in (even, odd):
        total = b.binary("add", total, _madd(b, left, right))
    return total


def _madd(b: FunctionBuilder, x: Value, y: Value) -> Value:
    lanes = x.lanes // 2
    full, result = f"@llvm.x86.{_MADD[lanes]}", Value("", "int32", lanes).type
    b.declarations.setdefault(full, f"declare {result} {full}({x.type}, {y.type})")
    return b.op(f"call {result} {full}({x.typed}, {y.typed})", "int32", lanes, max(x.depth, y.depth))


def _neon(b: FunctionBuilder, name: str, total: Value, x: Value, y: Value) -> Value:
    lanes = _BYTES * x.lanes
    return _call(
        b, f"aarch64.neon.{name}.v{x.lanes}i32.v{lanes}i8", total, _as(b, x, "int8", lanes), _as(b, y, "int8", lanes)
    )


def _signed(b: FunctionBuilder, total: Value, x: Value, y: Value) -> Value:
    """With an instruction for signed bytes alone: those of x less 128, and 128 times the sum of those of y."""
    moved = b.binary("xor", x, b.const(_word(-128), "int32", x.lanes))
    ones = b.const(_word(1), "int32", x.lanes)
    sums = _neon(b, "sdot", b.const(0, "int32", x.lanes), ones, y)
    missing = b.binary("shl", sums, b.const(7, "int32", x.lanes))
    return b.binary("add", _neon(b, "sdot", total, moved, y), missing)


def _word(byte: int) -> int:
    """A word whose bytes are all this one."""
    return int.from_bytes(byte.to_bytes(1, signed=True) * _BYTES, "little", signed=True)


def _byte_by_byte(b: FunctionBuilder, total: Value, x: Value, y: Value) -> Value:
    def shifted(opcode: str, value: Value, bits: int) -> Value:
        return b.binary(opcode, value, b.const(bits, "int32", x.lanes))

    for n in range(_BYTES):
        left = b.binary("and", shifted("lshr", x, 8 * n), b.const(255, "int32", x.lanes))
        right = shifted("ashr", shifted("shl", y, 24 - 8 * n), 24)
        total = b.binary("add", total, b.binary("mul", left, right))
    return total
