"""The structural hash: blind to names, and to nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tilewright import Task, te


def _gemm(
    *,
    shape: tuple[int, int, int] = (4, 8, 16),
    dtype: str = "float32",
    names: str = "ABCDijk",
    constant: bool = False,
    scale: float = 2.0,
    swap: bool = False,
    epilogue: Callable[[te.Expr], te.Expr] = te.exp,
    reduction: Callable[..., te.Expr] = te.sum,
) -> Task:
    m, n, d = shape
    a, b, c, e, _, _, r = list(names)
    A = te.placeholder((m, d), dtype, name=a)
    B = te.placeholder((d, n), dtype, name=b, constant=constant)
    k = te.reduce_axis(d, name=r)
    axes = f"lambda {names[4]}, {names[5]}: f({names[4]}, {names[5]})"
    C = te.compute((m, n), eval(axes, {"f": lambda i, j: reduction(A[i, k] * B[k, j], axis=k)}), name=c)
    D = te.compute((m, n), eval(axes, {"f": lambda i, j: epilogue(C[i, j] * scale)}), name=e)
    return Task([B, A] if swap else [A, B], [D])


def test_names_do_not_matter() -> None:
    assert _gemm().hash == _gemm(names="XYZWuvt").hash == _gemm(names="BACDjik").hash


DIFFERENT: dict[str, Task] = {
    "base": _gemm(),
    "shape": _gemm(shape=(4, 8, 32)),
    "transposed shape": _gemm(shape=(8, 4, 16)),
    "dtype": _gemm(dtype="float64"),
    "constant": _gemm(constant=True),
    "number": _gemm(scale=3.0),
    "operator": _gemm(epilogue=te.log),
    "no operator": _gemm(epilogue=lambda x: x),
    "reduction": _gemm(reduction=te.max),
    "order of inputs": _gemm(swap=True),
}


def test_anything_else_matters() -> None:
    hashes = {what: task.hash for what, task in DIFFERENT.items()}
    assert len(set(hashes.values())) == len(DIFFERENT), hashes


def _two_outputs(first: int) -> Task:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: A[i] * 2.0, name="C")
    return Task([A], [B, C] if first == 0 else [C, B])


def test_the_order_of_outputs_matters() -> None:
    assert _two_outputs(0).hash != _two_outputs(1).hash


def test_an_intermediate_that_is_also_an_output_matters() -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    assert Task([A], [C]).hash != Task([A], [C, B]).hash


def test_computing_the_same_twice_is_another_task_than_once() -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: te.exp(A[i]), name="B")
    B2 = te.compute((4,), lambda i: te.exp(A[i]), name="B2")
    once = te.compute((4,), lambda i: B[i] + B[i], name="C")
    twice = te.compute((4,), lambda i: B[i] + B2[i], name="C")
    assert Task([A], once).hash != Task([A], twice).hash


def test_transposed_reads_differ() -> None:
    A = te.placeholder((4, 4), name="A")
    straight = te.compute((4, 4), lambda i, j: A[i, j], name="C")
    transposed = te.compute((4, 4), lambda i, j: A[j, i], name="C")
    assert Task([A], straight).hash != Task([A], transposed).hash


def test_the_order_of_reduce_axes_matters() -> None:
    A = te.placeholder((4, 4), name="A")
    k, l = te.reduce_axis(4, name="k"), te.reduce_axis(4, name="l")  # noqa: E741
    one = te.compute((), lambda: te.sum(A[k, l], axis=[k, l]), name="C")
    other = te.compute((), lambda: te.sum(A[k, l], axis=[l, k]), name="C")
    assert Task([A], one).hash != Task([A], other).hash


@pytest.mark.parametrize(("a", "b"), [(0.0, -0.0), (0.0, float("nan")), (1.0, 1.0000001)])
def test_float_constants_are_told_apart(a: float, b: float) -> None:
    assert _gemm(scale=a).hash != _gemm(scale=b).hash


def test_float_constants_that_round_to_the_same_are_the_same() -> None:
    assert _gemm(scale=0.1).hash == _gemm(scale=0.10000000149011612).hash


def test_deep_sharing_takes_linear_time() -> None:
    A = te.placeholder((4,), name="A")

    def doubled_200_times(i: te.Axis) -> te.Expr:
        e = A[i]
        for _ in range(200):
            e = e + e
        return e

    assert len(Task([A], te.compute((4,), doubled_200_times, name="C")).hash) == 32


def test_sharing_a_node_or_repeating_it_is_the_same() -> None:
    A = te.placeholder((4,), name="A")
    repeated = te.compute((4,), lambda i: A[i] * A[i], name="C")

    def square(i: te.Axis) -> te.Expr:
        a = A[i]
        return a * a

    assert Task([A], repeated).hash == Task([A], te.compute((4,), square, name="C")).hash


PROGRAM = """
from tilewright import Task, te
A = te.placeholder((4, 8), name="A")
k = te.reduce_axis(8, name="k")
C = te.compute((4,), lambda i: te.sum(A[i, k] * 0.5, axis=k), name="C")
print(Task([A], C).hash)
"""


def test_the_hash_is_the_same_in_every_process() -> None:
    digests = set()
    for seed in ("0", "1"):
        run = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{PROGRAM}"],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(run.stdout.strip())
    assert len(digests) == 1
    assert len(digests.pop()) == 32
