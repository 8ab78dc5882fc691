"""Makes fewer movements of those that follow each other, and views of those that move nothing.

- Reshape of a Reshape is one Reshape; Transpose of a Transpose is one Transpose.
- A Transpose that moves only dimensions of one is a Reshape.
- Transpose, Reshape, Transpose is one Transpose and one Reshape, where the second moves whole groups of the axes that
  the Reshape makes: the shuffling of channels, say.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import TracingEditor, has_any
from tilewright.graph.passes.layout import Perm, compose, identity, inverse, is_view, permuted, reshaped
from tilewright.operators import ONNX, Node, transpose_order


def merge_movements(graph: Graph) -> Graph:
    if not has_any(graph, {"Reshape", "Transpose"}):
        return graph
    editor = TracingEditor(graph)
    for node in editor:
        if not _has_known_types(editor, node):
            editor.keep(node)
        elif node.op == "Reshape":
            _add_reshape(editor, node, node.inputs[0], node.outputs[0])
        else:
            _add_transpose(editor, node, node.inputs[0], _perm(editor, node), node.outputs[0])
    return editor.finish()


def _has_known_types(editor: TracingEditor, node: Node) -> bool:
    """A Reshape or a Transpose as `canonicalize` and `move_transposes` leave them."""
    if node.domain != ONNX or node.op not in ("Reshape", "Transpose"):
        return False
    known = [editor.types[name] for name in (node.inputs[0], node.outputs[0])]
    return all(type_ is not None and 0 not in type_.shape for type_ in known)


def _perm(editor: TracingEditor, transpose: Node) -> Perm:
    return transpose_order(transpose, len(editor.type(transpose.inputs[0]).shape))


def _add_reshape(editor: TracingEditor, node: Node, source: str, output: str) -> None:
    before = editor.producer(source)
    if before is not None and before.op == "Reshape" and before.domain == ONNX and _has_known_types(editor, before):
        source = before.inputs[0]
    if editor.types[source] == editor.types[output]:
        editor.replace(output, source)
    else:
        editor.add_reshape(source, editor.type(output).shape, like=node, output=output)


def _add_transpose(editor: TracingEditor, node: Node, source: str, perm: Perm, output: str) -> None:
    before = editor.producer(source)
    if before is not None and before.op == "Transpose" and _has_known_types(editor, before):
        source, perm = before.inputs[0], compose(_perm(editor, before), perm)
    if perm == identity(len(perm)):
        editor.replace(output, source)
    elif is_view(editor.type(source).shape, perm):
        _add_reshape(editor, node, source, output)
    elif not _hoisted(editor, node, source, perm, output):
        editor.add_transpose(source, perm, like=node, output=output)


def _hoisted(editor: TracingEditor, node: Node, source: str, perm: Perm, output: str) -> bool:
    """Transpose(Reshape(Transpose(x))) as Reshape(Transpose(x)), if that is possible."""
    reshape = editor.sole_producer(source)
    if reshape is None or reshape.op != "Reshape" or not _has_known_types(editor, reshape):
        return False
    first = editor.sole_producer(reshape.inputs[0])
    if first is None or first.op != "Transpose" or not _has_known_types(editor, first):
        return False
    # Backwards: x is a Reshape of y, and y a Transpose of the output; so x is a Transpose of a Reshape of the output.
    back = reshaped(editor.type(output).shape, inverse(perm), editor.type(reshape.inputs[0]).shape)
    if back is None:
        return False
    _, moved = back
    both = compose(_perm(editor, first), inverse(moved))
    if both == identity(len(both)):
        middle = first.inputs[0]
    else:
        middle = editor.fresh_name(f"{output}.moved")
        known = editor.type(first.inputs[0])
        editor.types[middle] = replace(known, shape=permuted(known.shape, both))
        _add_transpose(editor, node, first.inputs[0], both, middle)
    _add_reshape(editor, node, editor.resolve(middle), output)
    return True
