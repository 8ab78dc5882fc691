"""Branches and loops, and operators that have no kernel: what runs beside kernels, in the same graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto

from tilewright.testing.random_graphs.draft import Draft, Step, need


def _body(nodes: list[Any], outputs: list[str], inputs: Sequence[Any] = ()) -> GraphProto:
    return onnx.helper.make_graph(
        nodes, "body", inputs, [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
    )


def branch(draft: Draft, x: str) -> None:
    """An If whose branches read a value from around them; its condition is computed, or known."""
    need(draft.is_float(x))
    make = onnx.helper.make_node
    condition = draft.constant(np.array(True)) if draft.chance() else draft.given(np.array(draft.chance()))
    number = len(draft.nodes)
    first = _body([make("Neg", [x], [f"then{number}"])], [f"then{number}"])
    second = _body([make("Add", [x, x], [f"else{number}"])], [f"else{number}"])
    taken = -draft.values[x] if draft.values[condition] else draft.values[x] * 2
    draft.add("If", [condition], [taken], then_branch=first, else_branch=second)


def top_k(draft: Draft, x: str) -> None:
    need(draft.values[x].ndim and 0 not in draft.shape(x) and draft.values[x].dtype.kind == "f")
    axis = draft.axis(x)
    value = draft.values[x]
    need(len(np.unique(value)) == value.size)  # of equal elements any may come first
    count = draft.integer(1, draft.shape(x)[axis])
    draft.node("TopK", [x, draft.integers(count)], 2, axis=axis, largest=draft.integer(0, 1))


def compress(draft: Draft, x: str) -> None:
    axis = draft.axis(x)
    condition = draft.rng.integers(0, 2, draft.shape(x)[axis]).astype(bool)
    draft.node("Compress", [x, draft.constant(condition)], axis=axis)


def non_zero(draft: Draft, x: str) -> None:
    need(draft.values[x].ndim)
    draft.node("NonZero", [x])


def loop(draft: Draft, x: str) -> None:
    """A few rounds that double a value, and collect what it was."""
    need(draft.is_float(x))
    make, number = onnx.helper.make_node, len(draft.nodes)
    names = [f"{name}{number}" for name in ("round", "go_on", "carried", "still", "doubled", "kept")]
    step, go_on, carried, still, doubled, kept = names
    nodes = [make("Identity", [go_on], [still]), make("Add", [carried, carried], [doubled])]
    nodes.append(make("Identity", [carried], [kept]))
    inputs = [
        onnx.helper.make_tensor_value_info(step, onnx.TensorProto.INT64, ()),
        onnx.helper.make_tensor_value_info(go_on, onnx.TensorProto.BOOL, ()),
        onnx.helper.make_empty_tensor_value_info(carried),
    ]
    body = _body(nodes, [still, doubled, kept], inputs)
    draft.node("Loop", [draft.constant(np.array(draft.integer(1, 3), np.int64)), "", x], 2, body=body)


STEPS: tuple[Step, ...] = (*[branch] * 3, top_k, compress, non_zero, loop)
