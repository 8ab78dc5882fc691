"""Products with weights of few bits: several lie in a byte, and are taken apart in registers inside the product.

Passes and the import put this operator, of our own domain, into the place of MatMulNBits, and of a MatMul of what
DequantizeLinear makes of 4-bit constants. The weights stay as small in memory as the model has them.
"""

from __future__ import annotations

from tilewright import te
from tilewright.operators.node import OWN
from tilewright.operators.precision import wide_dtype, widen
from tilewright.operators.registry import Call, MisfitError, operator
from tilewright.te import Expr, Tensor


@operator("MatMulPacked", domain=OWN)
def matmul_packed(call: Call) -> Tensor:
    """A[..., k] times (weight[k, n] - zero[k // block, n]) * scale[k // block, n], summed along k.

    A byte of the second operand, [ceil(depth / weights a byte), columns], has the first weight in its lowest bits.
    Scales are the third and zero points the fourth; without these, zero is in the middle of what the bits can say.
    """
    A, packed, scales, zeros = call.tensor(0), call.tensor(1), call.tensor(2), call.optional(3)
    bits, block = call.attribute("bits", 4), call.attribute("block_size", 0)
    num_in_byte = 8 // bits
    depth, columns = A.shape[-1] if A.ndim else 0, packed.shape[-1]
    num_blocks = -(-depth // block)
    shapes = [(packed.shape, (-(-depth // num_in_byte), columns))]
    shapes += [(P.shape, (num_blocks, columns)) for P in (scales, zeros) if P is not None]
    if not te.is_float(A.dtype) or block % num_in_byte or any(given != wanted for given, wanted in shapes):
        raise MisfitError(
            f"a product of {A.dtype}{list(A.shape)} with weights of {bits} bits in blocks of {block} needs operands of "
            f"the shapes {[wanted for _, wanted in shapes]}, got {[given for given, _ in shapes]}"
        )
    k = te.reduce_axis(packed.shape[0], "k")
    dtype = wide_dtype(A.dtype)
    in_block: te.ExprLike = k // (block // num_in_byte) if num_blocks > 1 else 0

    def total(*i: Expr) -> Expr:
        *rows, j = i
        byte = te.cast(packed[k, j], "int32")
        scale = te.cast(scales[in_block, j], dtype)
        zero = te.constant(1 << (bits - 1), "int32") if zeros is None else zeros[in_block, j]
        products = None
        for n in range(num_in_byte):
            place = k * num_in_byte + n
            a = widen(A[(*rows, place)])
            if depth % num_in_byte > 0 and n >= depth % num_in_byte:  # beyond the end in the last byte
                a = te.select(place < depth, a, te.constant(0, dtype))
            product = a * (_centred(_part(byte, n, bits), zero, dtype) * scale)
            products = product if products is None else products + product
        assert products is not None, "a byte holds a weight"
        return te.sum(products, axis=k)

    product = te.compute((*A.shape[:-1], columns), total, call.name("product"))
    if product.dtype == A.dtype:
        return product
    return te.compute(product.shape, lambda *i: te.cast(product[i], A.dtype), call.name())


def _part(byte: Expr, n: int, bits: int) -> Expr:
    """The n-th weight in a byte."""
    shifted = byte // (1 << (n * bits)) if n else byte
    return shifted % (1 << bits) if (n + 1) * bits < 8 else shifted


def _centred(weight: Expr, zero: Expr, dtype: str) -> Expr:
    """A weight less its zero point, which is exact where both are integers."""
    if te.is_float(zero.dtype):
        return te.cast(weight, dtype) - te.cast(zero, dtype)
    return te.cast(weight - te.cast(zero, "int32"), dtype)
