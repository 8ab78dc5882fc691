"""Other names for the values of a graph: long, odd, and like those that a compiler might make itself."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto

from tilewright.testing.random_graphs.draft import Draft

_ODD = (
    *("x0", "sum0", "w0", "v0", "n0", "tw_0", "i0", "r0", "map0", "operand0", "main", "kernel", "float", "return"),
    *(
        "a/b:0",
        "/layer.0/Conv output",
        "ünïcode",
        "名前",
        "1",
        "-",
        ".",
        "x.shape",
        "x.2",
        '"quoted"',
        "new\nline",
        "%d",
    ),
    *("{}", "x" * 300, "tilewright.operand.0", "__init__", "None", "0x1"),
)


def renamed(model: ModelProto, draft: Draft) -> tuple[ModelProto, dict[str, str]]:
    """The model with values under odd names, and the new name of each."""
    names = [value.name for value in model.graph.input]
    names += [tensor.name for tensor in model.graph.initializer]
    names += [name for node in model.graph.node for name in node.output]
    odd = [str(name) for name in draft.rng.permutation(_ODD)]
    new = dict(zip(dict.fromkeys(names), odd, strict=False))
    result = ModelProto()
    result.CopyFrom(model)
    _rename(result.graph, new)
    return result, new


def _rename(graph: GraphProto, new: Mapping[str, str]) -> None:
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = new.get(value.name, value.name)
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, new)
