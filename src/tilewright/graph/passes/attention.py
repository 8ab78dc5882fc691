"""Attention: softmax and the product after it as one operator.

    MatMul -> Add -> Softmax -> MatMul      becomes      MatMul -> Add -> SoftmaxMatMul

The partition makes one kernel of all that. It computes a band of rows of the scores at a time, which stays in the cache
until the product after it has been computed.
"""

from __future__ import annotations

import math

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import TracingEditor, has_any
from tilewright.operators import ONNX, OWN, Node, axis_attribute, facts_of
from tilewright.operators.softmax import ATTENTION
from tilewright.te import DTYPES

# Of smaller scores there is little to gain: with 12 heads of 64, one kernel took 0.9 of the time of three for 128
# tokens, and 0.72 for 512.
_LEAST_SCORES_BYTES = 1 << 17
# Bands need rows, and rows have to be longer than a few vectors.
_LEAST_ROWS, _LEAST_COLUMNS = 32, 32
# Between the product that gives the scores and their softmax: a scale and masks.
_MOST_MAPS = 8


def fuse_attention(graph: Graph) -> Graph:
    """A Softmax along rows and the MatMul that alone reads it are one operator where the scores are large."""
    if not has_any(graph, {"Softmax"}):
        return graph
    editor = TracingEditor(graph)
    for node in editor:
        weights = editor.sole_producer(node.inputs[0]) if _is(node, "MatMul") else None
        blank = weights if weights is not None and _blanks_rows(editor, weights) else None
        softmax = weights if blank is None else editor.sole_producer(blank.inputs[2])
        if softmax is None or not _is(softmax, "Softmax") or not _is_attention(editor, softmax, node):
            editor.keep(node)
            continue
        output, known = node.outputs[0], editor.type(node.outputs[0])
        result = output if blank is None else editor.value(known, output)
        operands = [softmax.inputs[0], node.inputs[1]]
        editor.add(ATTENTION, operands, known, like=node, output=result, domain=OWN)
        if blank is not None:
            editor.add("Where", [*blank.inputs[:2], result], known, like=blank, output=output)
    return editor.finish()


def _blanks_rows(editor: TracingEditor, node: Node) -> bool:
    """Whether a Where makes zeros of whole rows, as ONNX's Attention does of those that see nothing.

    The product of such a row is zero, so that this can be done after it.
    """
    if not _is(node, "Where"):
        return False
    condition, zero = editor.types.get(node.inputs[0]), editor.constants.get(node.inputs[1])
    is_of_rows = condition is not None and condition.shape[-1:] == (1,)
    return is_of_rows and zero is not None and zero.size == 1 and not zero.item()


def _is(node: Node, op: str) -> bool:
    return node.domain == ONNX and node.op == op


def _is_attention(editor: TracingEditor, softmax: Node, product: Node) -> bool:
    """Whether these are rows of large scores that a product has computed, times values of the same type."""
    known = [editor.types.get(name) for name in (softmax.inputs[0], *product.inputs, *product.outputs)]
    scores, _, values, result = known
    if scores is None or values is None or result is None or not all(type_.is_compilable for type_ in known if type_):
        return False
    is_float = scores.dtype == values.dtype == "float32"
    if not is_float or len(scores.shape) < 2 or len(values.shape) < 2 or product.inputs[1] in editor.constants:
        return False
    size = math.prod(scores.shape) * DTYPES[scores.dtype].bytes
    is_large = size >= _LEAST_SCORES_BYTES and scores.shape[-2] >= _LEAST_ROWS and scores.shape[-1] >= _LEAST_COLUMNS
    is_along_rows = axis_attribute(softmax) % len(scores.shape) == len(scores.shape) - 1
    is_whole = result.shape[:-1] == scores.shape[:-1]  # no rows are read for several results
    return is_large and is_along_rows and is_whole and _comes_from_product(editor, softmax.inputs[0])


def _comes_from_product(editor: TracingEditor, name: str) -> bool:
    """Whether a product computes this value, with nothing but arithmetic on its elements in between."""
    shape = editor.type(name).shape
    for _ in range(_MOST_MAPS):
        source = editor.producer(name)
        if source is None or _is(source, "MatMul"):
            return source is not None
        if not facts_of(source).elementwise:
            return False
        same = [
            operand
            for operand in source.inputs
            if operand in editor.types and (known := editor.types[operand]) is not None and known.shape == shape
        ]
        computed = [operand for operand in same if operand not in editor.constants and editor.producer(operand)]
        if len(computed) != 1:
            return False
        name = computed[0]
    return False
