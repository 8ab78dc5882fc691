"""Quantized networks as kernels of integers: products of bytes, sums of which are scaled and rounded at once.

A model of QuantizeLinear and DequantizeLinear around its operators (QDQ) says what is computed in floats. Here

    Conv(DequantizeLinear(x), DequantizeLinear(w), bias) -> QuantizeLinear

becomes a sum of products of bytes (`ConvWords`), a scale and a shift for each channel, and a rounding: the scales of
both operands and of the result are one factor, the zero points and the bias one summand. Both are operands of the
kernel, so that layers of the same shape are one task. Sums of quantized values, as those of a shortcut, become scaled
sums of bytes, and pools and movements take bytes as they are.

Values that are int8 become uint8, 128 more, since the instruction multiplies unsigned bytes with signed ones. Results
differ from those of the model by at most one step of their scale: two roundings of a float are left out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import TracingEditor, has_any
from tilewright.graph.passes.quantization import HALF, Floats, QuantizedWeights, Scale, quantized_weights, scale_of
from tilewright.graph.passes.word_products import add_convolution, add_product
from tilewright.operators import ONNX, Node, TensorType

# What moves elements, or takes the largest: it is the same for what stands for them.
_MOVES = frozenset(("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "MaxPool"))
# Of a sum that is rounded: more are added as floats.
_MOST_TERMS = 2


def use_integer_products(graph: Graph) -> Graph:
    """Products of quantized values are computed in integers, where the scales are known ahead."""
    if not has_any(graph, {"DequantizeLinear"}):
        return graph
    return _Rewriting(graph).run()


@dataclass(frozen=True, slots=True)
class Quantized:
    """A value as bytes: (name - zero) * scale."""

    name: str
    scale: Scale


@dataclass(frozen=True, slots=True)
class ScaledSum:
    """A float as a sum of integers, each times a factor, and a shift; factors and shift broadcast to its shape."""

    terms: tuple[tuple[str, Floats], ...]
    shift: Floats


class _Rewriting:
    """The new graph, and what is known of values of the old one."""

    def __init__(self, graph: Graph) -> None:
        self.editor = TracingEditor(graph)
        self._uses = Counter(chain(graph.outputs, *(node.inputs for node in graph.nodes)))
        self._bytes: dict[str, Quantized] = {}
        """Floats that come of bytes."""
        self._sums: dict[str, ScaledSum] = {}
        """Floats that come of sums of integers and are read once."""
        self._unsigned: dict[str, str] = {}
        """What is 128 more, as uint8, for a value that is int8."""
        self._clipped: dict[str, tuple[str, float, float]] = {}
        """Values that are others within bounds."""

    def run(self) -> Graph:
        for node in self.editor:
            if not self._rewritten(node):
                self.editor.keep(node)
        return self.editor.finish()

    def _rewritten(self, node: Node) -> bool:
        if node.domain != ONNX or not all(
            self.editor.types.get(name) for name in (*node.inputs, *node.outputs) if name
        ):
            return False
        if node.op in _MOVES:
            return self._moved(node)
        handler = {
            "QuantizeLinear": self._quantize,
            "DequantizeLinear": self._dequantize,
            "Conv": self._convolution,
            "MatMul": self._product,
            "Gemm": self._product,
            "Add": self._sum,
            "Relu": self._bounded,
            "Clip": self._bounded,
        }.get(node.op)
        return handler is not None and handler(node)

    # --- bytes -------------------------------------------------------------------------------------------------------

    def _dequantize(self, node: Node) -> bool:
        scale = scale_of(self.editor, node)
        if scale is None or node.inputs[0] in self.editor.constants:
            return False
        name, unsigned = self._as_unsigned(node.inputs[0], node), scale.unsigned
        self._set_bytes(node, Quantized(name, unsigned))
        return True

    def _set_bytes(self, node: Node, value: Quantized) -> None:
        """The output of the node is what these bytes stand for."""
        output = node.outputs[0]
        scale, zero = self._scale_constants(value.scale)
        self.editor.add(
            "DequantizeLinear", [value.name, scale, zero], self.editor.type(output), like=node, output=output, opset=19
        )
        self._bytes[output] = value

    def _scale_constants(self, scale: Scale) -> tuple[str, str]:
        return (
            self.editor.constant(np.array(scale.scale, np.float32), "scale"),
            self.editor.constant(np.array(scale.zero, np.uint8), "zero"),
        )

    def _as_unsigned(self, name: str, node: Node) -> str:
        """A value that is uint8, or int8, as uint8."""
        known = self.editor.type(name)
        if known.dtype == "uint8":
            return name
        if name not in self._unsigned:
            wide = self.editor.add("Cast", [name], TensorType("int32", known.shape), {"to": 6}, like=node, opset=13)
            half = self.editor.constant(np.array(HALF, np.int32), "half")
            moved = self.editor.add("Add", [wide, half], TensorType("int32", known.shape), like=node, opset=14)
            type_ = TensorType("uint8", known.shape)
            self._unsigned[name] = self.editor.add("Cast", [moved], type_, {"to": 2}, like=node, opset=13)
        return self._unsigned[name]

    def _moved(self, node: Node) -> bool:
        """A movement, or the largest, of bytes in the place of that of floats."""
        value = self._bytes.get(node.inputs[0])
        if value is None or any(node.outputs[1:]):
            return False
        type_ = TensorType("uint8", self.editor.type(node.outputs[0]).shape)
        moved = self.editor.add(
            node.op, [value.name, *node.inputs[1:]], type_, node.attributes, like=node, opset=max(node.opset, 12)
        )
        self._set_bytes(node, replace(value, name=moved))
        return True

    # --- rounding ----------------------------------------------------------------------------------------------------

    def _quantize(self, node: Node) -> bool:
        scale = scale_of(self.editor, node)
        if scale is None:
            return False
        output = node.outputs[0]
        is_signed = self.editor.type(output).dtype == "int8"
        name = self._rounded(node, scale.unsigned)
        if name is None and not is_signed:
            return False
        if name is None:
            constants = self._scale_constants(scale.unsigned)
            type_ = TensorType("uint8", self.editor.type(output).shape)
            name = self.editor.add("QuantizeLinear", [node.inputs[0], *constants], type_, like=node, opset=19)
        if is_signed:
            self._unsigned[output] = name
            return False  # and the node stays, for those who read int8
        self.editor.replace(output, name)
        return True

    def _rounded(self, node: Node, scale: Scale) -> str | None:
        """The bytes of a sum of integers, or of bytes of another scale."""
        source, low, high = self._clipped.get(node.inputs[0], (node.inputs[0], -np.inf, np.inf))
        same = self._bytes.get(source)
        if same is not None and same.scale == scale and source == node.inputs[0]:
            return same.name
        found = self._sum_of(source)
        if found is None:
            return None
        shape = self.editor.type(node.outputs[0]).shape
        terms = tuple((name, factor / scale.scale) for name, factor in found.terms)
        total = self._add_sum(node, ScaledSum(terms, found.shift / scale.scale + scale.zero), shape)
        bounds = (low / scale.scale + scale.zero, high / scale.scale + scale.zero)
        if bounds[0] > 0 or bounds[1] < 255:
            limits = [self.editor.constant(np.array(bound, np.float32), "bound") for bound in np.clip(bounds, 0, 255)]
            total = self.editor.add("Clip", [total, *limits], TensorType("float32", shape), like=node, opset=13)
        one = self.editor.constant(np.array(1, np.float32), "one")
        zero = self.editor.constant(np.array(0, np.uint8), "zero")
        return self.editor.add("QuantizeLinear", [total, one, zero], TensorType("uint8", shape), like=node, opset=19)

    def _sum_of(self, name: str) -> ScaledSum | None:
        """A float as a sum of integers; one that others read too is not taken apart."""
        value = self._bytes.get(name)
        if value is not None:
            factor = np.array(value.scale.scale, np.float64)
            return ScaledSum(((value.name, factor),), -factor * value.scale.zero)
        return self._sums.get(name) if self._uses[name] == 1 else None

    def _add_sum(self, node: Node, value: ScaledSum, shape: tuple[int, ...], output: str = "") -> str:
        """The nodes that compute a scaled sum as a float."""
        type_ = TensorType("float32", shape)
        total = ""
        for name, factor in value.terms:
            wide = name
            if self.editor.type(name).dtype != "float32":
                wide = self.editor.add("Cast", [name], type_, {"to": 1}, like=node, opset=13)
            product = self.editor.add("Mul", [wide, self._vector(factor, shape)], type_, like=node, opset=14)
            total = self.editor.add("Add", [total, product], type_, like=node, opset=14) if total else product
        return self.editor.add(
            "Add", [total, self._vector(value.shift, shape)], type_, like=node, output=output, opset=14
        )

    def _vector(self, number: Floats, shape: tuple[int, ...]) -> str:
        """A constant of a number for each channel: one for all would be a part of the kernel, and not its operand."""
        axis = 1 if len(shape) > 3 else len(shape) - 1
        if number.size == 1 and shape:
            number = np.full((shape[axis], *(1 for _ in shape[axis + 1 :])), number.reshape(()))
        return self.editor.constant(number.astype(np.float32), "factors")

    # --- sums and bounds ---------------------------------------------------------------------------------------------

    def _sum(self, node: Node) -> bool:
        """Remember what a sum is made of; a constant is a shift."""
        left, right = node.inputs
        parts = [self._summand(name) for name in (left, right)]
        if None in parts or self.editor.type(node.outputs[0]).dtype != "float32":
            return False
        terms = tuple(chain.from_iterable(part.terms for part in parts if part is not None))
        shape = self.editor.type(node.outputs[0]).shape
        is_whole = all(self.editor.type(name).shape == shape for name, _ in terms)
        if 1 <= len(terms) <= _MOST_TERMS and is_whole:
            shift = parts[0].shift + parts[1].shift  # type: ignore[union-attr]  # none is None
            if shift.size <= max(shape, default=1):
                self._sums[node.outputs[0]] = ScaledSum(terms, shift)
        return False

    def _summand(self, name: str) -> ScaledSum | None:
        constant = self.editor.constants.get(name)
        if constant is None:
            constant = self._constant_floats(name)
        return self._sum_of(name) if constant is None else ScaledSum((), constant.astype(np.float64))

    def _constant_floats(self, name: str) -> npt.NDArray[np.generic] | None:
        """What a constant that is quantized stands for."""
        producer = self.editor.producer(name)
        weights = None if producer is None else quantized_weights(self.editor, producer)
        return None if weights is None else weights.floats

    def _bounded(self, node: Node) -> bool:
        """Remember what a Relu or a Clip bounds: what is rounded is bounded anyway."""
        bounds: list[float] = [0.0, np.inf]
        if node.op == "Clip":
            given = [self.editor.constants.get(name) if name else None for name in (*node.inputs[1:], "", "")[:2]]
            if any(name and value is None for name, value in zip(node.inputs[1:], given, strict=False)):
                return False
            bounds = [
                other if value is None else float(value.item())
                for value, other in zip(given, (-np.inf, np.inf), strict=True)
            ]
        if self._uses[node.outputs[0]] == 1 and self._sum_of(node.inputs[0]) is not None:
            self._clipped[node.outputs[0]] = (node.inputs[0], bounds[0], bounds[1])
        return False

    # --- products ----------------------------------------------------------------------------------------------------

    def _convolution(self, node: Node) -> bool:
        data, weights, bias = self._operands(node)
        if data is None or weights is None or bias is None:
            return False
        found = add_convolution(self.editor, node, data.name, data.scale.zero, weights)
        if found is None:
            return False
        rank = len(self.editor.type(node.outputs[0]).shape)
        self._finish(node, found.sums, data.scale, weights, found.corrections, bias, (-1, *[1] * (rank - 2)))
        return True

    def _product(self, node: Node) -> bool:
        data, weights, bias = self._operands(node)
        if data is None or weights is None or bias is None:
            return False
        found = add_product(self.editor, node, data.name, weights)
        if found is None:
            return False
        self._finish(node, found.sums, data.scale, weights, found.corrections, bias, (-1,))
        return True

    def _operands(self, node: Node) -> tuple[Quantized | None, QuantizedWeights | None, Floats | None]:
        """The data, the weights and the bias of a product, each None where it is not as it should be."""
        producer = self.editor.producer(node.inputs[1])
        weights = None if producer is None else quantized_weights(self.editor, producer)
        bias: Floats | None = np.zeros(())
        if len(node.inputs) > 2 and node.inputs[2]:
            known = self.editor.constants.get(node.inputs[2])
            known = self._constant_floats(node.inputs[2]) if known is None else known
            bias = None if known is None else known.astype(np.float64)
        return self._bytes.get(node.inputs[0]), weights, bias

    def _finish(
        self,
        node: Node,
        sums: str,
        scale: Scale,
        weights: QuantizedWeights,
        corrections: Floats,
        bias: Floats,
        shape: tuple[int, ...],
    ) -> None:
        """The float that the sums stand for: (sums - zero * corrections) * scales + bias."""
        factors = scale.scale * weights.scales
        shift = bias - factors * scale.zero * corrections
        # A bias of a Gemm may have rows, too.
        factors, shift = (x.reshape(shape) if x.ndim == 1 and x.size > 1 else x for x in (factors, np.asarray(shift)))
        value = ScaledSum(((sums, factors),), shift)
        output = node.outputs[0]
        self._add_sum(node, value, self.editor.type(output).shape, output)
        self._sums[output] = value
