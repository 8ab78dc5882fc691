"""Makes spatial operators work on channels-last data, between Transposes that `move_transposes` then takes away.

The operators are those of ONNX under the domain "tilewright": the same names and attributes, data as [N, *spatial, C].
Weights are constants, of a Conv as [*kernel, C / group, M], of a ConvTranspose as [*kernel, C, M / group].
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor
from tilewright.graph.passes.layout import to_channels_first, to_channels_last, transposed
from tilewright.graph.types import Constants, Types, expressed_types
from tilewright.operators import OWN, Node, NotCompilableError, TensorType, facts_of

_CONVOLUTIONS = frozenset(("Conv", "ConvTranspose"))


def use_channels_last(graph: Graph) -> Graph:
    """Convolutions with constant weights and pools become channels-last, where a kernel can compute them."""
    if not any(facts_of(node).prefers_channels_last for node in graph.nodes):
        return graph
    editor = Editor(graph)
    for node in editor:
        if not _rewritten(editor, node):
            editor.keep(node)
    return editor.finish()


def _rewritten(editor: Editor, node: Node) -> bool:
    if not facts_of(node).prefers_channels_last or any(node.outputs[1:]):
        return False
    source, result = editor.types[node.inputs[0]], editor.types[node.outputs[0]]
    if source is None or result is None or len(source.shape) < 3:
        return False
    inputs = node.inputs
    if node.op in _CONVOLUTIONS:
        if node.inputs[1] not in editor.constants:
            return False
        inputs = (node.inputs[0], _weights(editor, node), *node.inputs[2:])
    last = to_channels_last(len(source.shape))
    # Asked for the node as it stands: equal ones become equal ones.
    if not editor.compilable.get(
        node, editor.types, editor.constants, lambda constants: _fits(editor, node, inputs, source, constants)
    ):
        return False
    moved = editor.add_transpose(node.inputs[0], last, like=node)
    output = editor.add(node.op, [moved, *inputs[1:]], transposed(result, last), node.attributes, like=node, domain=OWN)
    editor.add_transpose(output, to_channels_first(len(result.shape)), like=node, output=node.outputs[0])
    return True


def _fits(editor: Editor, node: Node, inputs: tuple[str, ...], source: TensorType, constants: Constants) -> bool:
    own = replace(node, inputs=inputs, outputs=node.outputs[:1], domain=OWN)
    moved = transposed(source, to_channels_last(len(source.shape)))
    return can_express(own, ChainMap({node.inputs[0]: moved}, editor.types), constants)


def can_express(node: Node, types: Types, constants: Constants) -> bool:
    """Whether a kernel can compute a node of our own: there is no fallback for it."""
    try:
        expressed_types(node, types, constants)
    except NotCompilableError:
        return False
    return True


def _weights(editor: Editor, node: Node) -> str:
    """The name of the weights in the order for channels-last data."""
    name = node.inputs[1]
    weights = editor.constants[name]
    # Of a Conv the outputs go last, of a ConvTranspose they are after the inputs already.
    ends = (1, 0) if node.op == "Conv" else (0, 1)
    return editor.transposed_constant(name, (*range(2, weights.ndim), *ends))
