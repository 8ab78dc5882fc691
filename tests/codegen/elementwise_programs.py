"""Programs that work element by element, on the values where machines differ: special, extreme and halfway ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tests.codegen.program import Array, Program, check_exact, check_ulp
from tests.codegen.test_math import angles, special
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.te import DTYPES, Expr, Task, Tensor, is_float

Body = Callable[..., Expr]

_CIRCULAR = (te.sin, te.cos, te.tan)
_FUNCTIONS = tuple(f for f in (getattr(te, name) for name in ("abs", *te.FLOAT_FUNCTIONS)) if f not in _CIRCULAR)


def elementwise(bodies: Mapping[str, Body], dtype: str, *arrays: Array, check: Callable[..., None]) -> Program:
    """Each body, of one element of every array: in vectors, and a rest."""

    def schedule(target: Target, threads: int) -> Schedule:
        inputs = [te.placeholder(array.shape, dtype, name) for array, name in zip(arrays, "XYZ", strict=False)]
        outputs = [_compute(body, inputs, name) for name, body in bodies.items()]
        s = Schedule(Task(inputs, outputs, "elementwise"))
        for output in outputs:
            stage = s[output.name]
            block, inner = stage.split(stage.loops[0], 2 * target.lanes("float32") + 3)
            stage.vectorize(inner)
            if threads > 1:
                stage.parallel(block)
        return s

    return Program(schedule, lambda task: list(arrays), check)


def _compute(body: Body, inputs: Sequence[Tensor], name: str) -> Tensor:
    return te.compute(inputs[0].shape, lambda i: body(*(x[i] for x in inputs)), name=name)


def pairs(values: Array) -> tuple[Array, Array]:
    """Every value with every other."""
    return np.repeat(values, len(values)), np.tile(values, len(values))


def functions(dtype: str) -> Program:
    """All functions of one argument but those of angles."""
    values = np.concatenate([special(dtype), np.random.default_rng(7).uniform(-20, 20, 1000).astype(dtype)])
    return elementwise({f.__name__: f for f in _FUNCTIONS}, dtype, values, check=check_ulp)


def functions_of_angles(dtype: str) -> Program:
    """Small angles and large ones."""
    values = np.concatenate([np.random.default_rng(7).uniform(-20, 20, 1000).astype(dtype), angles(dtype)[::80]])
    return elementwise({f.__name__: f for f in _CIRCULAR}, dtype, values, check=check_ulp)


def functions_of_two(dtype: str) -> Program:
    bodies = {"pow": te.pow, "largest": te.maximum, "smallest": te.minimum}
    return elementwise(bodies, dtype, *pairs(special(dtype)), check=check_ulp)


def divisions(dtype: str) -> Program:
    """Floor division and remainder of integers: by zero, by -1, of the least integer by -1."""
    info = np.iinfo(dtype)
    least = max(info.min, -5)
    values = np.array([info.min, info.min + 1, *range(least, 6), 7, 100, info.max - 1, info.max], dtype)
    return elementwise({"quotient": te.floordiv, "rest": te.floormod}, dtype, *pairs(values), check=check_exact)


def casts(dtype: str) -> Program:
    """To every other type: of integers the extreme ones, which wrap around, of floats those that all types hold."""
    rng = np.random.default_rng(7)
    if is_float(dtype):
        values = rng.uniform(0, 127, 3000).astype(dtype)
    else:
        info = np.iinfo(dtype)
        values = np.append(rng.integers(info.min, info.max, 500, dtype, endpoint=True), [info.min, info.max, 0])
    bodies = {wanted: functools.partial(te.cast, dtype=wanted) for wanted in DTYPES if wanted != dtype}
    return elementwise(bodies, dtype, values.astype(dtype), check=check_exact)


def widening(dtype: str) -> Program:
    """All 65536 values of a half type to float32."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(np.float16) if dtype == "float16" else bits
    return elementwise({"wide": lambda x: te.cast(x, "float32")}, dtype, halves, check=check_exact)


def narrowing(dtype: str) -> Program:
    """float32 to a half type."""
    return elementwise({"narrow": lambda x: te.cast(x, dtype)}, "float32", around_halves(dtype), check=check_exact)


def around_halves(dtype: str) -> Array:
    """All values of a half type, the ties between them, the neighbours of all these in float32, and random bits."""
    if dtype == "float16":
        halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
        # After the largest number comes the one from which on all is infinite.
        ties = (halves + np.append(halves[1:], np.float32(2**16))) / 2
    else:
        bits = np.arange(0x7F80, dtype=np.uint32) << 16
        halves, ties = bits.view(np.float32), (bits + 0x8000).view(np.float32)
    positive = np.concatenate([halves, ties])
    exact = np.concatenate([positive, -positive]).view(np.uint32)
    random = np.random.default_rng(7).integers(0, 1 << 32, 100_000, dtype=np.uint32)
    return np.concatenate([exact, exact - 1, exact + 1, random, special("float32").view(np.uint32)]).view(np.float32)
