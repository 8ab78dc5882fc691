"""ONNX in: `load_model` reads a model and gives its graph, with static shapes and without shape arithmetic."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from onnx import ModelProto

from tilewright.graph.collecting import rare_collections
from tilewright.graph.graph import Graph
from tilewright.graph.onnx.arguments import check_operators
from tilewright.graph.onnx.importer import Importer
from tilewright.graph.onnx.inputs import fixed_input_types, inputs_of
from tilewright.graph.onnx.reading import opsets_of, read_model
from tilewright.graph.onnx.sizes import Shapes
from tilewright.graph.onnx.structure import all_names, ordered_nodes
from tilewright.graph.verify import Verifier

__all__ = ["load_model"]


@rare_collections()
def load_model(source: str | PathLike[str] | bytes | ModelProto, shapes: Shapes | None = None) -> Graph:
    """The graph of an ONNX model, of opset 11 or newer; onnx converts an older one.

    `shapes` gives what the model leaves open: shapes by the names of inputs, sizes by the names of dimensions. What
    does not depend on the inputs is computed here; an input that has an initializer is a constant.
    """
    model = read_model(source)
    opsets = opsets_of(model)
    check_operators(model.graph.node, opsets)
    nodes = ordered_nodes(model.graph)
    importer = Importer(all_names(model.graph))
    importer.add_initializers(model.graph, {})
    inputs = inputs_of(model.graph)
    for name, proto in fixed_input_types(inputs, {} if shapes is None else shapes).items():
        importer.set_type(name, proto)
    importer.add_nodes(nodes, opsets)
    name = model.graph.name
    if not name and isinstance(source, str | PathLike):
        name = Path(fspath(source)).stem
    graph = Graph(
        name=name or "network",
        inputs=tuple(value.name for value in inputs),
        outputs=tuple(value.name for value in model.graph.output),
        nodes=importer.nodes,
        constants=importer.constants,
        types=importer.types,
    )
    return Verifier().after("the import", graph)
