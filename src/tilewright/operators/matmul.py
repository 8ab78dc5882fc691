"""Matrix products as NumPy has them: batched, broadcast, with vectors; and Gemm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright import te
from tilewright.operators.operands import broadcast_shape, element
from tilewright.operators.registry import Call, NotCompilableError, operator
from tilewright.te import Expr, Tensor


@dataclass(frozen=True, slots=True)
class MatMul:
    """The shapes of a product of A and B: [*batch, rows, depth] with [*batch, depth, columns].

    A vector A has no rows and a vector B no columns; nor has the product.
    """

    A: Tensor
    B: Tensor
    batch: tuple[int, ...]

    @property
    def rows(self) -> tuple[int, ...]:
        return self.A.shape[-2:-1]

    @property
    def columns(self) -> tuple[int, ...]:
        return self.B.shape[-1:] if self.B.ndim > 1 else ()

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.batch, *self.rows, *self.columns)

    def left(self, i: Sequence[Expr], k: Expr) -> tuple[Expr, ...]:
        """The index of A, in the shape that its batch is broadcast to, for an element of the product."""
        return (*i[: len(self.batch) + len(self.rows)], k)

    def right(self, i: Sequence[Expr], k: Expr) -> tuple[Expr, ...]:
        """The index of B."""
        return (*i[: len(self.batch)], k, *i[len(self.batch) + len(self.rows) :])


def matmul_of(call: Call, A: Tensor, B: Tensor) -> MatMul:
    """The product of two operands of a node."""
    if A.ndim == 0 or B.ndim == 0 or A.shape[-1] != B.shape[-2 if B.ndim > 1 else 0]:
        raise NotCompilableError(f"{call.node.op} cannot multiply the shapes {A.shape} and {B.shape}")
    return MatMul(A, B, broadcast_shape(call, A.shape[:-2], B.shape[:-2]))


def multiply(
    call: Call, product: MatMul, term: Callable[[Expr, Expr, Sequence[Expr]], Expr] = lambda a, b, i: a * b
) -> Tensor:
    """The sums of `term(a, b, index of the product)` along the depth."""
    k = te.reduce_axis(product.A.shape[-1], "k")

    def total(*i: Expr) -> Expr:
        a, b = element(product.A, product.left(i, k)), element(product.B, product.right(i, k))
        return te.sum(term(a, b, i), axis=k)

    return te.compute(product.shape, total, call.name("product"))


@operator("MatMul")
def matmul(call: Call) -> Tensor:
    return multiply(call, matmul_of(call, call.tensor(0), call.tensor(1)))


@operator("Gemm")
def gemm(call: Call) -> Tensor:
    """alpha * A @ B + beta * C, each of A and B transposed if asked for."""
    A, B, C = call.tensor(0), call.tensor(1), call.optional(2)
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    rows, depth = A.shape[::-1] if call.attribute("transA", 0) else A.shape
    columns = B.shape[0] if call.attribute("transB", 0) else B.shape[1]
    k = te.reduce_axis(depth, "k")

    def total(i: Expr, j: Expr) -> Expr:
        a = A[k, i] if call.attribute("transA", 0) else A[i, k]
        return te.sum(a * (B[j, k] if call.attribute("transB", 0) else B[k, j]), axis=k)

    product = te.compute((rows, columns), total, call.name("product"))
    if alpha == 1.0 and (C is None or beta == 0.0):
        return product

    def scaled(*i: Expr) -> Expr:
        value = product[i] if alpha == 1.0 else _times(product[i], alpha)
        if C is None or beta == 0.0:
            return value
        return value + (element(C, i) if beta == 1.0 else _times(element(C, i), beta))

    return te.compute(product.shape, scaled, call.name("gemm"), product.dtype)


def _times(x: Expr, factor: float) -> Expr:
    if te.is_float(x.dtype):
        return x * factor
    if factor != int(factor):
        raise NotCompilableError(f"Gemm of {x.dtype} with a factor of {factor} is not compiled")
    return x * int(factor)
