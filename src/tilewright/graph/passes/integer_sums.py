"""ConvInteger and MatMulInteger as sums of products of bytes as they are, and what the zero points add to them.

    sum((x - p) * (w - q)) = sum(x * w) - p * sum(w - q) - q * sum(x)

Weights and their zero points q are constants; p may be known only when the network runs, as where DynamicQuantizeLinear
gives it. The sums of x are those of a product with ones, and are there only where some q is not in the middle.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import numpy.typing as npt

from tilewright.graph.passes.editor import Editor
from tilewright.graph.passes.quantization import HALF, QuantizedWeights
from tilewright.graph.passes.word_products import add_convolution, add_product
from tilewright.operators import Node, TensorType

SUMS = frozenset(("ConvInteger", "MatMulInteger"))
_INT32, _UINT8 = 6, 2


def expand_sums(editor: Editor, node: Node) -> bool:
    """Put sums of bytes in the place of the node; False, and nothing that matters is added, where it cannot be."""
    if node.op not in SUMS:
        return False
    x, w, x_zero, w_zero = (*node.inputs, "", "")[:4]
    source, result, weights = editor.types[x], editor.types[node.outputs[0]], editor.constants.get(w)
    if source is None or result is None or weights is None or x in editor.constants:
        return False
    zeros = editor.constants.get(w_zero) if w_zero else np.zeros(1, weights.dtype)
    has_one_zero = not x_zero or ((known := editor.types[x_zero]) is not None and math.prod(known.shape) == 1)
    offsets = None if zeros is None else _offsets(node, weights, zeros)
    if offsets is None or not has_one_zero:
        return False
    made = _Sums(editor, node, x, x_zero).made(weights.astype(np.int32), offsets)
    if made is None:
        return False
    editor.add("Sub", list(made), result, like=node, output=node.outputs[0], opset=14)
    return True


def _offsets(node: Node, weights: npt.NDArray[np.generic], zeros: npt.NDArray[np.generic]) -> _Integers | None:
    """The zero points of the weights, to be taken off them; None where they are not one for all, or for each output."""
    num_outputs = weights.shape[0 if node.op == "ConvInteger" else -1] if weights.ndim else 0
    if weights.ndim < 2 or zeros.size not in (1, num_outputs) or zeros.ndim > 1:
        return None
    axes = weights.ndim if node.op == "ConvInteger" else 1
    return zeros.astype(np.int32).reshape(-1, *[1] * (axes - 1))


_Integers = npt.NDArray[np.int32]


class _Sums:
    """The sums of one node, made of data that is unsigned by now."""

    def __init__(self, editor: Editor, node: Node, x: str, x_zero: str) -> None:
        self.editor = editor
        self.node = node
        is_signed = editor.type(x).dtype == "int8"
        self.data = self._moved(x) if is_signed else x
        zero = editor.add_reshape(x_zero, (), like=node) if x_zero and x_zero not in editor.constants else ""
        known = editor.constants[x_zero] if x_zero and not zero else np.zeros(1, np.int32)
        self.known_zero = None if zero else int(known.item()) + HALF * is_signed
        """The byte that stands for zero, where it is known ahead."""
        self.zero = (self._moved(zero) if is_signed else zero) if zero else self._constant(self.known_zero or 0, "zero")

    def made(self, weights: _Integers, offsets: _Integers) -> tuple[str, str] | None:
        """The sums, and what is to be taken off them."""
        total = weights - offsets
        over = tuple(range(1, weights.ndim)) if self.is_convolution else 0
        middle = HALF if self.editor.type(self.node.inputs[1]).dtype == "uint8" else 0
        rest = offsets - middle
        if self.is_depthwise(weights):
            weights, rest = total, np.zeros_like(rest)  # they need not be bytes
        else:
            weights = weights - middle
        sums = self._products(weights)
        if sums is None:
            return None
        shape = (-1, *[1] * (weights.ndim - 2)) if self.is_convolution else (-1,)
        corrections = self.editor.constant(total.sum(axis=over, dtype=np.int32).reshape(shape), "corrections")
        factor = self._cast(self.zero, _INT32)
        off = self._binary("Mul", corrections, factor)
        if np.any(rest):
            if self.is_convolution and self._group > 1:
                return None
            ones = self._products(
                np.ones((1, *weights.shape[1:]) if self.is_convolution else (len(weights), 1), np.int32)
            )
            if ones is None:
                return None
            per_channel = self.editor.constant(rest.reshape(shape), "offsets")
            off = self._binary("Add", off, self._binary("Mul", ones, per_channel))
        return sums, off

    @property
    def is_convolution(self) -> bool:
        return self.node.op == "ConvInteger"

    def is_depthwise(self, weights: _Integers) -> bool:
        return self.is_convolution and self._group > 1 and weights.shape[1] == 1

    @property
    def _group(self) -> int:
        return cast(int, self.node.attributes.get("group", 1))

    def _products(self, values: _Integers) -> str | None:
        """The sums of the data with these weights; None where there is no kernel for them."""
        weights = QuantizedWeights(values, np.ones(1), 0)
        if not self.is_convolution:
            product = add_product(self.editor, self.node, self.data, weights)
            return None if product is None else product.sums
        around = self.zero if self.known_zero is None else self.known_zero
        found = add_convolution(self.editor, self.node, self.data, around, weights)
        return None if found is None else self._cast(found.sums, _INT32)

    # --- small nodes -------------------------------------------------------------------------------------------------

    def _moved(self, name: str) -> str:
        """Signed bytes as unsigned ones, 128 more."""
        half = self.editor.constant(np.array(HALF, np.int32), "half")
        return self._cast(self._binary("Add", self._cast(name, _INT32), half), _UINT8)

    def _constant(self, number: int, hint: str) -> str:
        return self.editor.constant(np.array(number, np.int32), hint)

    def _cast(self, name: str, to: int) -> str:
        type_ = TensorType("int32" if to == _INT32 else "uint8", self.editor.type(name).shape)
        if self.editor.type(name) == type_:
            return name
        return self.editor.add("Cast", [name], type_, {"to": to}, like=self.node, opset=13)

    def _binary(self, op: str, a: str, b: str) -> str:
        shape = np.broadcast_shapes(self.editor.type(a).shape, self.editor.type(b).shape)
        return self.editor.add(op, [a, b], TensorType("int32", shape), like=self.node, opset=14)
