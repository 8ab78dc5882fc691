"""A small writer of LLVM IR text for one function, with value numbering and hoisting.

Writing text is several times faster than building llvmlite's IR objects. Scopes follow the loops and branches. A pure
instruction is written in the outermost scope that has its operands, before the loops that do not change it, and only
once: the same right-hand side gives the earlier value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

LLVM_TYPE = {
    "bool": "i1",
    "int8": "i8",
    "uint8": "i8",
    "int16": "i16",
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
    "float16": "half",
    "bfloat16": "bfloat",
    "float32": "float",
    "float64": "double",
    "ptr": "ptr",
}

_INTRINSIC_SUFFIX = {
    "bool": "i1", "int8": "i8", "uint8": "i8", "int16": "i16", "int32": "i32", "uint32": "i32", "int64": "i64",
    "uint64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "ptr": "p0",
}  # fmt: skip


class Value(NamedTuple):
    """An SSA value or literal: its text, element type, number of vector lanes (1 is a scalar), and scope."""

    text: str
    dtype: str
    lanes: int
    depth: int = 0  # the scope that defines it; a literal is known everywhere

    @property
    def type(self) -> str:
        return llvm_type(self.dtype, self.lanes)

    @property
    def typed(self) -> str:
        return f"{llvm_type(self.dtype, self.lanes)} {self.text}"


@cache
def llvm_type(dtype: str, lanes: int) -> str:
    element = LLVM_TYPE[dtype]
    return element if lanes == 1 else f"<{lanes} x {element}>"


class _Scope:
    """The text of one loop body or branch, and the values that are known in it."""

    def __init__(self, block: str, is_conditional: bool) -> None:
        self.lines: list[str] = []
        self.values: dict[str, Value] = {}
        self.block = block  # the basic block that is being written
        self.is_conditional = is_conditional
        self.is_full = False  # a loop inside it was written that needs all vector registers
        self.begin = self.before = self.counter = self.head = ""


class FunctionBuilder:
    """Writes the body of one function. `declarations` collects the intrinsics that it uses.

    `has_fma` and `has_rounding` are what `Target` says of them.
    """

    def __init__(self, declarations: dict[str, str], has_fma: bool = True, has_rounding: bool = True) -> None:
        self.declarations = declarations
        self.has_fma = has_fma
        self.has_rounding = has_rounding
        self.num_names = 0  # about as many as instructions
        self._scopes = [_Scope("0", False)]

    @property
    def lines(self) -> list[str]:
        """The text of the current scope."""
        return self._scopes[-1].lines

    @property
    def depth(self) -> int:
        return len(self._scopes) - 1

    @property
    def safe_depth(self) -> int:
        """The outermost scope that runs whenever the current one does."""
        for depth in range(self.depth, 0, -1):
            if self._scopes[depth].is_conditional:
                return depth
        return 0

    @property
    def spare_depth(self) -> int:
        """The outermost scope from which no value waits over a loop that was written already and needs all registers.

        A value that waits in a register puts one of the sums of such a loop into memory, and back in every step.
        """
        for depth in range(self.depth, 0, -1):
            if self._scopes[depth].is_full:
                return depth
        return 0

    def fill_registers(self) -> None:
        """Say that the loop that is being written needs all vector registers."""
        self._scopes[max(self.depth - 1, 0)].is_full = True

    # --- values -----------------------------------------------------------------------------------------

    def name(self, hint: str = "v") -> str:
        self.num_names += 1
        return f"%{hint}{self.num_names}"

    def op(self, rhs: str, dtype: str, lanes: int, depth: int) -> Value:
        """Write a pure instruction in scope `depth`, or return the value that the same instruction has there."""
        scope = self._scopes[depth]
        known = scope.values.get(rhs)
        if known is not None:
            return known
        value = Value(self.name(), dtype, lanes, depth)
        scope.lines.append(f"  {value.text} = {rhs}")
        scope.values[rhs] = value
        return value

    def effect(self, line: str) -> None:
        """Write an instruction that has no value or must not be merged with another."""
        self.lines.append("  " + line)

    def fresh(self, rhs: str, dtype: str, lanes: int) -> Value:
        """Write an instruction whose value must not be merged or moved (a load, an alloca, a call)."""
        value = Value(self.name(), dtype, lanes, self.depth)
        self.lines.append(f"  {value.text} = {rhs}")
        return value

    # --- control flow -----------------------------------------------------------------------------------

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self._scopes[-1].block = name

    def open_loop(self, begin: str) -> Value:
        """Begin a loop that runs at least once; returns its counter."""
        before = self._scopes[-1].block
        scope = _Scope(before, False)
        self._scopes.append(scope)
        label = self.name("loop")[1:]
        counter = Value(self.name("i"), "int64", 1, self.depth)
        self.label(label)
        scope.begin, scope.before, scope.counter, scope.head = begin, before, counter.text, label
        self.lines.append("")  # the phi, once the last block of the body is known
        return counter

    def close_loop(self, end: str) -> None:
        """End the innermost loop, whose counter runs while it is below `end`."""
        scope = self._scopes.pop()
        after = self.name("end")[1:]
        following = f"{scope.counter}.next"
        scope.lines[1] = (
            f"  {scope.counter} = phi i64 [ {scope.begin}, %{scope.before} ], [ {following}, %{scope.block} ]"
        )
        scope.lines += [
            f"  {following} = add nuw nsw i64 {scope.counter}, 1",
            f"  {scope.counter}.more = icmp slt i64 {following}, {end}",
            f"  br i1 {scope.counter}.more, label %{scope.head}, label %{after}",
            f"{after}:",
        ]
        outer = self._scopes[-1]
        outer.lines.append(f"  br label %{scope.head}")
        outer.lines += scope.lines
        outer.block = after
        outer.is_full |= scope.is_full

    def branch(self, cond: Value, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """Run `then` where `cond` holds, else `otherwise`."""
        sides = [self._side(then), self._side(otherwise)]
        after = self.name("end")[1:]
        outer = self._scopes[-1]
        outer.lines.append(f"  br {cond.typed}, label %{sides[0].head}, label %{sides[1].head}")
        for side in sides:
            outer.lines += [*side.lines, f"  br label %{after}"]
            outer.is_full |= side.is_full
        self.label(after)

    def _side(self, write: Callable[[], None]) -> _Scope:
        scope = _Scope("", True)
        self._scopes.append(scope)
        scope.head = self.name("side")[1:]
        self.label(scope.head)
        write()
        return self._scopes.pop()

    # --- constants --------------------------------------------------------------------------------------

    def const(self, value: float, dtype: str, lanes: int = 1) -> Value:
        """A literal, the same in every lane."""
        text = literal(value, dtype)
        if lanes == 1:
            return Value(text, dtype, 1)
        return Value(f"splat ({LLVM_TYPE[dtype]} {text})", dtype, lanes)

    def vector(self, values: Iterable[float], dtype: str) -> Value:
        """A literal vector with the given lanes."""
        items = list(values)
        return Value("<" + ", ".join(f"{LLVM_TYPE[dtype]} {literal(v, dtype)}" for v in items) + ">", dtype, len(items))

    def broadcast(self, x: Value, lanes: int) -> Value:
        """`x` in every lane; a value that already has that many lanes is returned as it is."""
        if x.lanes == lanes:
            return x
        if not x.text.startswith("%"):
            return Value(f"splat ({LLVM_TYPE[x.dtype]} {x.text})", x.dtype, lanes)
        vector = llvm_type(x.dtype, lanes)
        first = self.op(f"insertelement {vector} poison, {x.typed}, i64 0", x.dtype, lanes, x.depth)
        return self.shuffle(first, first, [0] * lanes)

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """The given lanes of `a` followed by `b`; one lane gives a vector of one."""
        mask = ", ".join(f"i32 {n}" for n in lanes)
        rhs = f"shufflevector {a.typed}, {b.typed}, <{len(lanes)} x i32> <{mask}>"
        return self.op(rhs, a.dtype, len(lanes), max(a.depth, b.depth))

    def extract(self, x: Value, lane: int) -> Value:
        return self.op(f"extractelement {x.typed}, i64 {lane}", x.dtype, 1, x.depth)

    def insert(self, x: Value, element: Value, lane: int) -> Value:
        rhs = f"insertelement {x.typed}, {element.typed}, i64 {lane}"
        return self.op(rhs, x.dtype, x.lanes, max(x.depth, element.depth))

    # --- operations: operands must have one type and one number of lanes ------------------------------------

    def binary(self, opcode: str, a: Value, b: Value) -> Value:
        """`opcode` as LLVM spells it, flags included: "fadd contract", "add", "lshr", "and", ..."""
        return self.op(f"{opcode} {a.typed}, {b.text}", a.dtype, a.lanes, max(a.depth, b.depth))

    def fadd(self, a: Value, b: Value) -> Value:
        return self.binary("fadd contract", a, b)

    def fsub(self, a: Value, b: Value) -> Value:
        return self.binary("fsub contract", a, b)

    def fmul(self, a: Value, b: Value) -> Value:
        return self.binary("fmul contract", a, b)

    def fdiv(self, a: Value, b: Value) -> Value:
        return self.binary("fdiv", a, b)

    def fneg(self, a: Value) -> Value:
        return self.op(f"fneg {a.typed}", a.dtype, a.lanes, a.depth)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """`a * b + c`: with one rounding where the target can, else with two."""
        if self.has_fma:
            return self.intrinsic("fma", a, b, c)
        return self.binary("fadd", self.binary("fmul", a, b), c)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """`predicate` as LLVM spells it: "olt", "une", "uno" for floats, "slt", "ult", "eq" for integers."""
        opcode = "fcmp" if LLVM_TYPE[a.dtype] in ("float", "double", "half", "bfloat") else "icmp"
        return self.op(f"{opcode} {predicate} {a.typed}, {b.text}", "bool", a.lanes, max(a.depth, b.depth))

    def select(self, cond: Value, a: Value, b: Value) -> Value:
        """Lane by lane; a scalar condition chooses whole vectors."""
        depth = max(cond.depth, a.depth, b.depth)
        return self.op(f"select {cond.typed}, {a.typed}, {b.typed}", a.dtype, a.lanes, depth)

    def convert(self, opcode: str, x: Value, dtype: str) -> Value:
        """`opcode` one of bitcast, sext, zext, trunc, fpext, fptrunc, sitofp, uitofp, fptosi, ..."""
        return self.op(f"{opcode} {x.typed} to {llvm_type(dtype, x.lanes)}", dtype, x.lanes, x.depth)

    def bitcast(self, x: Value, dtype: str) -> Value:
        return self.convert("bitcast", x, dtype)

    def intrinsic(self, name: str, *args: Value) -> Value:
        """A pure overloaded intrinsic on the type of its first argument: intrinsic("fabs", x) is llvm.fabs.v8f32."""
        x = args[0]
        suffix = _INTRINSIC_SUFFIX[x.dtype] if x.lanes == 1 else f"v{x.lanes}{_INTRINSIC_SUFFIX[x.dtype]}"
        full = f"@llvm.{name}.{suffix}"
        if full not in self.declarations:
            self.declarations[full] = f"declare {x.type} {full}({', '.join(a.type for a in args)})"
        depth = max(a.depth for a in args)
        return self.op(f"call {x.type} {full}({', '.join(a.typed for a in args)})", x.dtype, x.lanes, depth)


def literal(value: float, dtype: str) -> str:
    """`value` as an LLVM literal of `dtype`; floats are written as their bits, so that none is rounded."""
    if dtype == "bool":
        return "true" if value else "false"
    if value != value:
        value = math.nan  # one of all: that of inf - inf has a sign
    if dtype == "float32":
        rounded = struct.unpack("<f", struct.pack("<f", _clamp_float32(value)))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    if dtype == "float64":
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"
    return str(int(value))


def _clamp_float32(value: float) -> float:
    if abs(value) > 3.4028235677973366e38 and abs(value) != float("inf"):
        return float("inf") if value > 0 else float("-inf")
    return float(value)
