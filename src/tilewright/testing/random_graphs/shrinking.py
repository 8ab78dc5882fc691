"""The smallest part of a graph that still fails: of one output, with inputs in the place of what was computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import onnx
from onnx import ModelProto, NodeProto

from tilewright.graph.protos import captured_names
from tilewright.testing.random_graphs.draft import value_info
from tilewright.testing.random_graphs.graph import RandomGraph

_MAX_TRIES = 60
_MAX_PRINTED = 400


def shrink(graph: RandomGraph, fails: Callable[[RandomGraph], bool]) -> RandomGraph:
    """The graph without what `fails` does not need."""
    tries = 0
    was_smaller = True
    while was_smaller:
        was_smaller = False
        for smaller in _smaller(graph):
            tries += 1
            if tries > _MAX_TRIES:
                return graph
            if fails(smaller):
                graph, was_smaller = smaller, True
                break
    return graph


def text_of(model: ModelProto) -> str:
    """The model as ONNX text; long lines, which hold constants, are cut."""
    lines = str(onnx.printer.to_text(model)).splitlines()
    return "\n".join(line if len(line) <= _MAX_PRINTED else f"{line[:_MAX_PRINTED]} ..." for line in lines)


def _smaller(graph: RandomGraph) -> Iterator[RandomGraph]:
    outputs = [value.name for value in graph.model.graph.output]
    if len(outputs) > 1:
        yield from (_part(graph, [name], set()) for name in outputs)
    for node in graph.model.graph.node:
        if node.op_type != "Constant" and not set(node.output) & set(outputs):
            yield _part(graph, outputs, set(node.output))


def _part(graph: RandomGraph, outputs: list[str], given: set[str]) -> RandomGraph:
    """What computes these outputs from inputs and the values that are given."""
    old = graph.model.graph
    wanted = set(outputs)
    nodes: list[NodeProto] = []
    for node in reversed(old.node):
        if wanted & set(node.output) - given:
            nodes.insert(0, node)
            wanted |= {*node.input, *captured_names(node)} - {""}
    constants = [tensor for tensor in old.initializer if tensor.name in wanted]
    made = {tensor.name for tensor in constants} | {name for node in nodes for name in node.output}
    inputs = {
        name: graph.values[name] for name in (*graph.inputs, *sorted(given)) if name in wanted and name not in made
    }
    part = onnx.helper.make_graph(
        nodes,
        "part",
        [value_info(name, value) for name, value in inputs.items()],
        [onnx.helper.make_empty_tensor_value_info(name) for name in outputs],
        constants,
    )
    model = onnx.helper.make_model(part, ir_version=8, opset_imports=graph.model.opset_import)
    return replace(graph, model=model, inputs=inputs, shapes={})
