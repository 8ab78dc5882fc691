"""A slow interpreter of loop nests in plain Python: what a lowered schedule means, without generating code.

It is strict where compiled code is not: an index out of bounds, a read of memory that was never written, an output
element that is never written, and two iterations of a parallel loop that meet in one element are all errors.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import LoweringError
from tilewright.ir import (
    Block,
    Buffer,
    For,
    Index,
    Load,
    LoopNest,
    Module,
    Stmt,
    Store,
    Test,
    Update,
    Where,
)
from tilewright.schedule import PARALLEL, accumulator_dtype
from tilewright.te import (
    DTYPES,
    Binary,
    Cast,
    Const,
    Expr,
    Select,
    Unary,
    Var,
    bfloat16_to_float32,
    float32_to_bfloat16,
    is_float,
    numpy_dtype,
)
from tilewright.te.index import Atom, FromMemory, Linear

Value: TypeAlias = "int | float | bool"
Environment: TypeAlias = dict[Var, int]
Evaluate: TypeAlias = Callable[[Environment], Any]
Run: TypeAlias = Callable[[Environment], None]


def interpret(module: Module, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """The outputs of the module's kernel for these inputs (bfloat16 as its bits), constants packed first."""
    inputs = list(arrays)
    for pack in module.packs:
        inputs[pack.position] = _run(pack.nest, [arrays[pack.position]])[0]
    return _run(module.kernel, inputs)


def _run(nest: LoopNest, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    interpreter = _Interpreter()
    memories = [_Memory(buffer) for buffer in nest.arguments]
    for memory, array in zip(memories, inputs, strict=False):
        memory.fill(array)
    for memory in memories:
        interpreter.memories[memory.buffer] = memory
    with np.errstate(all="ignore"):
        interpreter.statement(nest.body)({})
    return [memory.array() for memory in memories[len(inputs) :]]


class _Memory:
    """The elements of one buffer; None where nothing was written yet."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.values: list[Any] = []
        self.writers: dict[int, int] = {}  # the iteration of the parallel loop that wrote each element
        self.updated: set[int] = set()
        self.clear()

    def clear(self) -> None:
        self.values = [None] * self.buffer.num_elements
        self.forget_writers()

    def forget_writers(self) -> None:
        self.writers.clear()
        self.updated.clear()

    def fill(self, array: NDArray[Any]) -> None:
        numbers = bfloat16_to_float32(array) if self.buffer.dtype == "bfloat16" else array
        self.values = numbers.reshape(-1).tolist()

    def array(self) -> NDArray[Any]:
        if None in self.values:
            at = np.unravel_index(self.values.index(None), self.buffer.shape)
            raise LoweringError(f"{self.buffer.name}{[int(i) for i in at]} is never written")
        if self.buffer.dtype == "bfloat16":
            return float32_to_bfloat16(self.values).reshape(self.buffer.shape)
        return np.array(self.values, numpy_dtype(self.buffer.dtype)).reshape(self.buffer.shape)


class _Interpreter:
    """Turns statements and expressions into Python closures over the values of the loop variables."""

    def __init__(self) -> None:
        self.memories: dict[Buffer, _Memory] = {}
        self.iteration: int | None = None

    # --- statements -------------------------------------------------------------------------------------------------

    def statement(self, stmt: Stmt) -> Run:
        if isinstance(stmt, For):
            return self._loop(stmt)
        if isinstance(stmt, Block):
            return self._block(stmt)
        if isinstance(stmt, Where):
            return self._where(stmt)
        if isinstance(stmt, Store):
            return self._store(stmt)
        assert isinstance(stmt, Update)
        return self._update(stmt)

    def _loop(self, loop: For) -> Run:
        outside = list(self.memories.values())
        body, var = self.statement(loop.body), loop.var
        values = range(loop.begin, loop.begin + loop.extent)

        def run(env: Environment) -> None:
            for value in values:
                env[var] = value
                body(env)
            del env[var]

        def run_parallel(env: Environment) -> None:
            # Backwards, since no order may be relied on.
            for value in reversed(values):
                env[var] = self.iteration = value
                body(env)
            del env[var]
            self.iteration = None
            for memory in outside:
                memory.forget_writers()

        return run_parallel if loop.kind == PARALLEL else run

    def _block(self, stmt: Block) -> Run:
        memories = [_Memory(buffer) for buffer in stmt.buffers]
        for memory in memories:
            self.memories[memory.buffer] = memory
        body = [self.statement(inner) for inner in stmt.body]
        for memory in memories:
            del self.memories[memory.buffer]

        def run(env: Environment) -> None:
            for memory in memories:
                memory.clear()
            for inner in body:
                inner(env)

        return run

    def _where(self, stmt: Where) -> Run:
        cases = [(begin, end, self.statement(case)) for begin, end, case in stmt.cases]

        def run(env: Environment) -> None:
            value = env[stmt.var]
            (chosen,) = [case for begin, end, case in cases if begin <= value < end]
            chosen(env)

        return run

    def _store(self, stmt: Store) -> Run:
        memory, address = self._address(stmt.buffer, stmt.indices)
        value, stored = self.value(stmt.value), _rounding(stmt.buffer.dtype)

        def run(env: Environment) -> None:
            self._write(memory, address(env), stored(value(env)))

        return run

    def _update(self, stmt: Update) -> Run:
        targets = [self._address(buffer, stmt.indices) for buffer in stmt.buffers]
        values = [self.value(value) for value in stmt.values]
        stored = [_rounding(buffer.dtype) for buffer in stmt.buffers]
        combine = _combine_arg(stmt.op) if stmt.op.startswith("arg") else _combine_plain(stmt.op)

        def run(env: Environment) -> None:
            places = [(memory, address(env)) for memory, address in targets]
            old = [self._read(memory, at) for memory, at in places]
            new = combine(old, [value(env) for value in values])
            for (memory, at), number, rounded in zip(places, new, stored, strict=True):
                self._write(memory, at, rounded(number), is_update=True)

        return run

    # --- memory -----------------------------------------------------------------------------------------------------

    def _address(self, buffer: Buffer, indices: tuple[Linear, ...]) -> tuple[_Memory, Callable[[Environment], int]]:
        if buffer not in self.memories:
            raise LoweringError(f"buffer {buffer.name} is used outside its life")
        parts = list(zip(map(self._linear, indices), buffer.shape, buffer.strides, strict=True))

        def address(env: Environment) -> int:
            at = 0
            for index, extent, stride in parts:
                value = index(env)
                if not 0 <= value < extent:
                    where = ", ".join(map(str, indices))
                    loops = ", ".join(f"{var.name}={value}" for var, value in env.items())
                    raise LoweringError(f"{buffer.name}[{where}] is out of bounds {buffer.shape} at {loops}")
                at += value * stride
            return at

        return self.memories[buffer], address

    def _read(self, memory: _Memory, at: int) -> Any:
        value = memory.values[at]
        if value is None:
            raise LoweringError(f"element {at} of {memory.buffer.name} is read before it is written")
        if self.iteration is not None and memory.writers.get(at, self.iteration) != self.iteration:
            raise LoweringError(f"element {at} of {memory.buffer.name} is read from another thread's iteration")
        return value

    def _write(self, memory: _Memory, at: int, value: Value, is_update: bool = False) -> None:
        if self.iteration is not None:
            if memory.writers.get(at, self.iteration) != self.iteration and (at in memory.updated or is_update):
                raise LoweringError(f"element {at} of {memory.buffer.name} is updated by two iterations in parallel")
            memory.writers[at] = self.iteration
            if is_update:
                memory.updated.add(at)
        memory.values[at] = value

    # --- expressions ------------------------------------------------------------------------------------------------

    def value(self, e: Expr) -> Evaluate:
        if isinstance(e, Const):
            number = e.value
            return lambda env: number
        if isinstance(e, Load):
            memory, address = self._address(e.buffer, e.indices)
            return lambda env: self._read(memory, address(env))
        if isinstance(e, Index):
            return self._linear(e.form)
        if isinstance(e, Test):
            form, holds = self._linear(e.form), _COMPARE[e.op]
            return lambda env: holds(form(env), 0)
        if isinstance(e, Select):
            cond, a, b = self.value(e.cond), self.value(e.a), self.value(e.b)
            return lambda env: a(env) if cond(env) else b(env)
        if isinstance(e, Cast):
            x, converted = self.value(e.x), _rounding(e.dtype)
            return lambda env: converted(x(env))
        if isinstance(e, Unary):
            return self._unary(e)
        assert isinstance(e, Binary), f"unexpected expression {e!r}"
        return self._binary(e)

    def _unary(self, e: Unary) -> Evaluate:
        x, fn, rounded = self.value(e.x), _UNARY[e.op], _rounding(accumulator_dtype(e.dtype))
        return lambda env: rounded(fn(x(env)))

    def _binary(self, e: Binary) -> Evaluate:
        a, b, rounded = self.value(e.a), self.value(e.b), _rounding(accumulator_dtype(e.dtype))
        fn = _COMPARE.get(e.op) or _BINARY[e.op]
        return lambda env: rounded(fn(a(env), b(env)))

    def _linear(self, form: Linear) -> Evaluate:
        constant = form.const
        terms = [(self._atom(atom), coefficient) for atom, coefficient in form.terms.items()]

        def evaluate(env: Environment) -> int:
            total = constant
            for atom, coefficient in terms:
                total += atom(env) * coefficient
            return total

        return evaluate

    def _atom(self, atom: Atom) -> Evaluate:
        if isinstance(atom, Var):
            return operator.itemgetter(atom)
        if isinstance(atom, FromMemory):
            return self.value(atom.value)
        a, b, fn = self._linear(atom.a), self._linear(atom.b), _BINARY[atom.op]
        return lambda env: fn(a(env), b(env))


@functools.cache
def _rounding(dtype: str) -> Callable[[Any], Any]:
    """The function that makes any number one that `dtype` can hold."""
    kind = DTYPES[dtype]
    if kind.kind == "bool":
        return bool
    if is_float(dtype):
        if dtype == "bfloat16":
            return lambda x: float(bfloat16_to_float32(float32_to_bfloat16(x)))
        convert = numpy_dtype(dtype).type
        return lambda x: float(convert(x))
    half = 0 if kind.kind == "uint" else 1 << (kind.bits - 1)
    return lambda x: (int(x) + half) % (1 << kind.bits) - half


def _larger(a: Value, b: Value) -> Value:
    return a if a > b or a != a else b


def _smaller(a: Value, b: Value) -> Value:
    return a if a < b or a != a else b


def _combine_plain(op: str) -> Callable[[list[Any], list[Any]], list[Any]]:
    fn = {"sum": operator.add, "prod": operator.mul, "max": _larger, "min": _smaller}[op]
    return lambda old, new: [fn(old[0], new[0])]


def _combine_arg(op: str) -> Callable[[list[Any], list[Any]], list[Any]]:
    """The better value with its index; NaN is best of all, and of equals the one with the smaller index."""
    better = operator.gt if op == "argmax" else operator.lt

    def combine(old: list[Any], new: list[Any]) -> list[Any]:
        is_nan, was_nan = new[0] != new[0], old[0] != old[0]
        if is_nan != was_nan:
            return new if is_nan else old
        if is_nan or new[0] == old[0]:
            return new if new[1] < old[1] else old
        return new if better(new[0], old[0]) else old

    return combine


def _dot4(a: Any, b: Any) -> Any:
    unsigned, signed = (np.array([word], np.int32).view(dtype) for word, dtype in ((a, np.uint8), (b, np.int8)))
    return np.int32(np.dot(unsigned.astype(np.int32), signed.astype(np.int32)))


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda a, b: np.float64(a) / np.float64(b),
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "pow": lambda a, b: np.float64(a) ** np.float64(b),
    "max": _larger,
    "min": _smaller,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "dot4": _dot4,
}

_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "abs": abs,
    "not": operator.not_,
    "floor": np.floor,
    "ceil": np.ceil,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "tanh": np.tanh,
    "erf": math.erf,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
