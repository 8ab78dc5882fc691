"""How far outputs of a graph may differ because of rounding alone: the graph is run with other roundings.

After each node that rounds, the result is multiplied by numbers that differ from 1 in the last bits; sums are rounded
as the largest of them is. Where outputs leap (a float that is rounded, compared or searched), they leap in some of
these runs as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto

from tilewright.testing.random_graphs.draft import Array

_MOVES = frozenset(
    (
        *("Abs", "Neg", "Identity", "Dropout", "Relu", "Max", "Min", "Clip", "Where", "Constant", "Cast", "CastLike"),
        *(
            "Transpose",
            "Reshape",
            "Flatten",
            "Squeeze",
            "Unsqueeze",
            "Expand",
            "Tile",
            "Concat",
            "Split",
            "Slice",
            "Pad",
        ),
        *(
            "DepthToSpace",
            "SpaceToDepth",
            "Trilu",
            "ReverseSequence",
            "Gather",
            "GatherElements",
            "GatherND",
            "TopK",
            "Pad",
        ),
        *("ScatterND", "OneHot", "ConstantOfShape", "Compress", "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"),
        *("Sign", "Floor", "Ceil", "Round", "Hardmax"),
    )
)
# Their results are rounded to integers inside of them, from floats that no output shows.
_ROUNDED_INSIDE = frozenset(("QuantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv"))
_SUMS = frozenset(
    ("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "Resize", "GridSample", "ReduceSum", "ReduceMean", "CumSum")
)
_SMALLEST = {"float16": 2.0**-24}  # products come down to where it has few digits left
_NOISE = {"float16": 2.0**-10, "float32": 2.0**-21, "float64": 2.0**-50}


def with_other_roundings(model: ModelProto, values: Mapping[str, Array], rng: np.random.Generator) -> ModelProto:
    """The model with noise on every result that was rounded."""
    noisy = ModelProto()
    noisy.CopyFrom(model)
    graph = noisy.graph
    nodes: list[NodeProto] = []
    constants: dict[str, Array] = {}

    def constant(value: Array, like: Array) -> str:
        name = f"noise {len(constants)}"
        constants[name] = value.astype(like.dtype)
        return name

    def add_noise(source: str, target: str, *, is_sum: bool) -> None:
        value = values[target if target in values else source]
        size = _NOISE[value.dtype.name]
        largest = float(np.abs(value[np.isfinite(value)]).max(initial=0))
        least = max(_SMALLEST.get(value.dtype.name, 0.0), size * largest if is_sum else 0.0)
        factors = constant(1 + size * rng.choice([-1.0, 1.0], value.shape), value)
        if not least:
            nodes.append(onnx.helper.make_node("Mul", [source, factors], [target]))
            return
        terms = constant(least * rng.choice([-1.0, 0.0, 1.0], value.shape), value)
        nodes.append(onnx.helper.make_node("Mul", [source, factors], [f"{target} times noise"]))
        nodes.append(onnx.helper.make_node("Add", [f"{target} times noise", terms], [target]))

    for node in graph.node:
        if node.op_type in _ROUNDED_INSIDE:
            for position, name in enumerate(node.input):
                if name in values and values[name].dtype.name in _NOISE:
                    node.input[position] = f"noisy {len(constants)}"
                    add_noise(name, node.input[position], is_sum=False)
        nodes.append(node)
        if node.op_type in _MOVES or node.op_type in _ROUNDED_INSIDE:
            continue
        for position, name in enumerate(node.output):
            if name in values and values[name].dtype.name in _NOISE:
                node.output[position] = f"{name} before"
                add_noise(node.output[position], name, is_sum=node.op_type in _SUMS)
    made = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(made)
    graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in constants.items())
    return noisy


def is_within(got: Array, expected: Array, others: Sequence[Any]) -> bool:
    """Whether every element is as far from the expected one as in other roundings, give or take a few times that."""
    if got.dtype != expected.dtype:
        return False
    if any(np.shape(other) != expected.shape for other in others):
        return got.shape == expected.shape or got.shape in {np.shape(other) for other in others}
    if got.shape != expected.shape:
        return False
    same = got == expected
    if got.dtype.kind == "f":
        same |= np.isnan(got) & np.isnan(expected)
    with np.errstate(all="ignore"):
        for other in others:
            same |= (got == other) | ((got != got) & (other != other))
        wide = expected.astype(np.float64)
        spread = np.max([np.abs(other.astype(np.float64) - wide) for other in others], axis=0)
        same |= np.abs(got.astype(np.float64) - wide) <= 4 * spread
    return bool(same.all())
