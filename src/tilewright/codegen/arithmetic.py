"""What the operations of expressions and reductions mean on values, as NumPy defines them."""

from __future__ import annotations

import re

from tilewright.codegen.builder import FunctionBuilder, Value, literal
from tilewright.codegen.math import emit_pow
from tilewright.te import is_float

_FLOAT = {"add": "fadd contract", "sub": "fsub contract", "mul": "fmul contract", "div": "fdiv"}
_INT = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or"}
_FLOAT_COMPARE = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_INT_COMPARE = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_POSITIVE_LITERAL = re.compile(r"(?:splat \(i\d+ )?(\d+)\)?")
_REDUCE = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def binary(b: FunctionBuilder, op: str, x: Value, y: Value) -> Value:
    """`x op y` for operands of one type and one number of lanes."""
    if op in ("max", "min"):
        return extremum(b, op, x, y)
    if op == "pow":
        return emit_pow(b, x, y)
    if op in _INT_COMPARE:
        return compare(b, op, x, y)
    if is_float(x.dtype):
        return b.binary(_FLOAT[op], x, y)
    if op in ("floordiv", "mod"):
        return _divide(b, op, x, y)
    return b.binary(_INT[op], x, y)


def compare(b: FunctionBuilder, op: str, x: Value, y: Value) -> Value:
    if is_float(x.dtype):
        return b.compare(_FLOAT_COMPARE[op], x, y)
    predicate = _INT_COMPARE[op]
    if x.dtype in ("uint8", "bool") and predicate.startswith("s"):
        predicate = "u" + predicate[1:]
    return b.compare(predicate, x, y)


def extremum(b: FunctionBuilder, op: str, x: Value, y: Value) -> Value:
    """The greater or lesser; NaN where either is NaN. One machine instruction where one side is a constant."""
    predicate = "gt" if op == "max" else "lt"
    if not is_float(x.dtype):
        return b.select(compare(b, predicate, x, y), x, y)
    if _is_number(y):
        x, y = y, x
    # `a > b ? a : b` gives b where either is NaN; where a is a number, only b can be NaN.
    chosen = b.select(compare(b, predicate, x, y), x, y)
    if _is_number(x):
        return chosen
    return b.select(b.compare("uno", x, x), x, chosen)


def _is_number(x: Value) -> bool:
    """Whether this is a literal other than NaN."""
    return not x.text.startswith("%") and literal(float("nan"), x.dtype) not in x.text


def _divide(b: FunctionBuilder, op: str, x: Value, y: Value) -> Value:
    """Floor division and its remainder; by zero both give 0, as NumPy's do."""
    power = _power_of_two(y)
    if power is not None and op == "mod":
        return b.binary("and", x, b.const((1 << power) - 1, x.dtype, x.lanes))
    if power is not None:
        return b.binary("lshr" if x.dtype == "uint8" else "ashr", x, b.const(power, x.dtype, x.lanes))
    zero = b.const(0, x.dtype, x.lanes)
    one = b.const(1, x.dtype, x.lanes)
    if x.dtype == "uint8":
        is_zero = b.compare("eq", y, zero)
        result = b.binary("udiv" if op == "floordiv" else "urem", x, b.select(is_zero, one, y))
        return b.select(is_zero, zero, result)
    minus = b.const(-1, x.dtype, x.lanes)
    is_zero, is_minus = b.compare("eq", y, zero), b.compare("eq", y, minus)
    # Division by -1 can overflow, which traps: it is a negation, and its remainder is 0.
    safe = b.select(b.binary("or", is_zero, is_minus), one, y)
    rest = b.binary("srem", x, safe)
    differs = b.binary("and", b.compare("ne", rest, zero), b.compare("slt", b.binary("xor", rest, safe), zero))
    if op == "mod":
        return b.select(is_zero, zero, b.binary("add", rest, b.select(differs, safe, zero)))
    quotient = b.binary("sub", b.binary("sdiv", x, safe), b.select(differs, one, zero))
    return b.select(is_zero, zero, b.select(is_minus, b.binary("sub", zero, x), quotient))


def _power_of_two(y: Value) -> int | None:
    """The exponent of a literal 1, 2, 4, ...: bits are shifted or masked, whatever the sign of the other operand."""
    number = _POSITIVE_LITERAL.fullmatch(y.text)
    value = int(number[1]) if number is not None else 0
    return value.bit_length() - 1 if value.bit_count() == 1 else None


def combine(b: FunctionBuilder, op: str, x: Value, y: Value) -> Value:
    """One step of the reduction `op`."""
    if x.dtype == "bool":
        return b.binary("or" if op in ("max", "sum") else "and", x, y)
    return binary(b, _REDUCE[op], x, y)


def combine_indexed(
    b: FunctionBuilder, op: str, best: tuple[Value, Value], new: tuple[Value, Value]
) -> tuple[Value, Value]:
    """One step of argmax or argmin on (value, index): the first of equals, and NaN before all."""
    (value, index), (other, position) = best, new
    better = compare(b, "gt" if op == "argmax" else "lt", other, value)
    equal = compare(b, "eq", other, value)
    if is_float(value.dtype):
        other_nan, value_nan = b.compare("uno", other, other), b.compare("uno", value, value)
        better = b.select(value_nan, b.const(0, "bool", value.lanes), b.binary("or", better, other_nan))
        equal = b.binary("or", equal, b.binary("and", other_nan, value_nan))
    first = b.binary("and", equal, b.compare("slt", position, index))
    take = b.binary("or", better, first)
    return b.select(take, other, value), b.select(take, position, index)


def reduce_lanes(b: FunctionBuilder, op: str, x: Value) -> Value:
    """All lanes of `x` combined into one, in a tree."""
    while x.lanes > 1:
        half = x.lanes // 2
        if half == 1:
            first, rest = b.extract(x, 0), [b.extract(x, n) for n in range(1, x.lanes)]
            for other in rest:
                first = combine(b, op, first, other)
            return first
        odd = b.extract(x, x.lanes - 1) if x.lanes % 2 else None
        low, high = b.shuffle(x, x, range(half)), b.shuffle(x, x, range(half, 2 * half))
        x = combine(b, op, low, high)
        if odd is not None:
            x = b.insert(x, combine(b, op, b.extract(x, 0), odd), 0)
    return x


def reduce_lanes_indexed(b: FunctionBuilder, op: str, values: Value, indices: Value) -> tuple[Value, Value]:
    best = (b.extract(values, 0), b.extract(indices, 0))
    for lane in range(1, values.lanes):
        best = combine_indexed(b, op, best, (b.extract(values, lane), b.extract(indices, lane)))
    return best
