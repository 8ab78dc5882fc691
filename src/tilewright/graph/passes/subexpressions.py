"""Computes once what several nodes compute alike, and holds equal constants once."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor
from tilewright.graph.signatures import attributes_key
from tilewright.operators import Node, is_random

_NUM_SAMPLES = 64
# Constants up to this size are compared by all their bytes at once, and larger ones with as many others at most.
_WHOLE_BYTES = 1 << 10
_MOST_COMPARED = 16


def share_subexpressions(graph: Graph) -> Graph:
    """Nodes with the same operator, attributes and inputs become one."""
    editor = Editor(graph)
    _share_constants(editor)
    first: dict[Hashable, Node] = {}
    for node in editor:
        key = _key(node)
        same = None if key is None else first.setdefault(key, node)
        if same is None or same is node:
            editor.keep(node)
            continue
        for name, other in zip(node.outputs, same.outputs, strict=True):
            if name:
                editor.replace(name, other)
    return editor.finish()


def _share_constants(editor: Editor) -> None:
    alike: dict[Hashable, list[str]] = {}
    for name, value in editor.constants.items():
        if name in editor.outputs or value.dtype.hasobject:
            continue
        others = alike.setdefault(_sample(value), [])
        is_whole = value.nbytes <= _WHOLE_BYTES
        same = next((other for other in others if is_whole or _is_same(editor.constants[other], value)), None)
        if same is not None:
            editor.replace(name, same)
        elif len(others) < _MOST_COMPARED:
            others.append(name)


def _sample(value: npt.NDArray[np.generic]) -> Hashable:
    """Enough of a constant to tell most apart without going through all their bytes."""
    step = 1 if value.nbytes <= _WHOLE_BYTES else max(1, value.size // _NUM_SAMPLES)
    return value.dtype, value.shape, value.reshape(-1)[::step].tobytes()


def _is_same(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> bool:
    """The same bytes: 0.0 and -0.0 differ, and NaN is equal to itself."""
    return bool(np.array_equal(_bytes(a), _bytes(b)))


def _bytes(value: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def _key(node: Node) -> Hashable | None:
    """What makes two nodes compute the same; None for a node that must stay by itself."""
    if is_random(node):
        return None
    attributes = attributes_key(node)
    if attributes is None:
        return None
    return node.domain, node.op, node.opset, node.inputs, tuple(map(bool, node.outputs)), attributes
