"""Products of bytes by words: four neighbouring channels are one int32, which `te.dot4` multiplies and adds up.

Passes put these operators, of our own domain, into the place of what a model says of quantized products. They sum the
bytes as they are; zero points are in what is added to the sums. Data are unsigned, with channels last, and are padded
with the byte that stands for zero; weights are signed.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright import te
from tilewright.operators.convolution import convolve, filter_of, flatten
from tilewright.operators.layout import CHANNELS_LAST
from tilewright.operators.matmul import matmul_of, multiply
from tilewright.operators.node import OWN
from tilewright.operators.operands import element
from tilewright.operators.registry import Call, Facts, MisfitError, operator
from tilewright.operators.window import pad_windows, windows
from tilewright.te import Expr, Tensor


@operator("Words", domain=OWN, facts=Facts(reinterprets=True))
def words(call: Call) -> Tensor:
    """The bytes of a tensor, four along the last axis as one word: the same memory."""
    X = call.tensor(0)
    if X.ndim == 0 or X.shape[-1] % te.WORD_BYTES or X.dtype not in ("int8", "uint8"):
        raise MisfitError(f"words are of {te.WORD_BYTES} bytes along the last axis, got {X.dtype}{list(X.shape)}")

    def word(*i: Expr) -> Expr:
        *outer, last = i
        return te.word_of([X[(*outer, last * te.WORD_BYTES + n)] for n in range(te.WORD_BYTES)])

    return te.compute((*X.shape[:-1], X.shape[-1] // te.WORD_BYTES), word, call.name())


@operator("ConvWords", domain=OWN)
def conv_words(call: Call) -> Tensor:
    """The sums of a convolution of words; `zero`, or what the third operand is, is the byte around the data."""
    zero = call.optional(2)
    if zero is None:
        return _convolution(call, te.constant(_word(call.attribute("zero", 0)), "int32"), te.dot4)
    return _convolution(call, te.cast(element(zero, ()), "int32") * _word(1), te.dot4)


@operator("ConvBytes", domain=OWN)
def conv_bytes(call: Call) -> Tensor:
    """The sums of a convolution of bytes with weights that are floats; around the data is what `ConvWords` has."""
    zero = call.optional(2)
    padding = te.constant(call.attribute("zero", 0), call.tensor(0).dtype) if zero is None else element(zero, ())
    return _convolution(call, padding, lambda x, w: te.cast(x, "float32") * w)


def _word(byte: int) -> int:
    """A word whose bytes are all this one."""
    return int.from_bytes(bytes([byte] * te.WORD_BYTES), "little", signed=True)


def _convolution(call: Call, padding: Expr, product: Callable[[Expr, Expr], Expr]) -> Tensor:
    X = call.tensor(0)
    weights = filter_of(call, 1, CHANNELS_LAST)
    dimensions = windows(call, CHANNELS_LAST.spatial(X.shape), weights.kernel)
    P = pad_windows(call, X, CHANNELS_LAST, dimensions, padding)
    return flatten(call, convolve(call, P, weights, dimensions, lambda x, w, f: product(x, w)), CHANNELS_LAST, None)


@operator("MatMulWords", domain=OWN)
def matmul_words(call: Call) -> Tensor:
    """The sums of a product of words: unsigned ones of the rows, signed ones of the columns."""
    return multiply(call, matmul_of(call, call.tensor(0), call.tensor(1)), lambda a, b, i: te.dot4(a, b))
