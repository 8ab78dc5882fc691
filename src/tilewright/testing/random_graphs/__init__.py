"""Random ONNX graphs of a few nodes: valid, of odd sizes, and of all that one file of operators or another can draw.

A family is a module with `STEPS`: functions that add a node, or a few, after a value. Everything follows from the seed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import ModelProto, NodeProto

from tilewright.testing.random_graphs import control, elementwise, images, movement, networks, products, reductions
from tilewright.testing.random_graphs.draft import Draft, NotDrawn, Step
from tilewright.testing.random_graphs.graph import RandomGraph
from tilewright.testing.random_graphs.names import renamed

__all__ = ["FAMILIES", "Draft", "RandomGraph", "random_graph"]

FAMILIES: dict[str, Sequence[Step]] = {
    "elementwise": elementwise.STEPS,
    "reductions": reductions.STEPS,
    "movement": movement.STEPS,
    "products": products.STEPS,
    "images": images.STEPS,
    "networks": (networks.block,),
    "control": control.STEPS,
}
_WEIGHTS = {"elementwise": 7, "reductions": 4, "movement": 6, "products": 4, "images": 3, "networks": 2, "control": 1}
_OPSETS = (11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)
_DTYPES = ("float32",) * 10 + ("float64", "float16", "int64", "int32", "int8", "uint8", "bool")
_MAX_TRIES = 200


def random_graph(seed: int, family: str | None = None) -> RandomGraph:
    """A graph of one to eight nodes or so; of one family alone if it is named."""
    rng = np.random.default_rng([seed, 1])
    draft = Draft(seed, int(rng.choice(_OPSETS)))
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        draft.input(_shape(draft), draft.choice(_DTYPES))
    num_nodes = draft.integer(1, 7)
    names = [family] if family else list(FAMILIES)
    weights = np.array([_WEIGHTS[name] for name in names])
    for _ in range(_MAX_TRIES):
        if len(draft.nodes) >= num_nodes:
            break
        steps = FAMILIES[str(rng.choice(names, p=weights / weights.sum()))]
        with contextlib.suppress(NotDrawn):
            draft.choice(steps)(draft, _value(draft))
    return _finished(draft)


def _shape(draft: Draft) -> list[int]:
    rank = draft.choice([0, 1, 2, 2, 2, 3, 3, 4, 4, 5])
    most = {0: 1, 1: 131, 2: 70, 3: 19, 4: 12, 5: 5}[rank]
    shape = [draft.extent(most) for _ in range(rank)]
    if shape and draft.chance(0.04):
        shape[draft.integer(0, rank - 1)] = 0
    return shape


def _value(draft: Draft) -> str:
    """Often one of the last, so that nodes follow each other; at times a constant."""
    names = [name for name in draft.values if name not in draft.constants or draft.chance(0.1)]
    return str(draft.choice(names[-3:] if draft.chance(0.6) else names))


def _finished(draft: Draft) -> RandomGraph:
    model = draft.model_of(_outputs(draft))
    values = dict(draft.values)
    shapes = _open_dimensions(draft, model)
    _place_constants(draft, model)
    for node in model.graph.node:
        if draft.chance():
            node.name = draft.choice(["", "node", "a/b", "é:0", node.op_type])
    if draft.chance(0.25):
        model, new = renamed(model, draft)
        values = {new.get(name, name): value for name, value in values.items()}
        shapes = {new.get(name, name): shape for name, shape in shapes.items()}
    inputs = {value.name: values[value.name] for value in model.graph.input if value.name not in _constants(model)}
    return RandomGraph(model, inputs, shapes, values)


def _outputs(draft: Draft) -> list[str]:
    """What nothing reads, some of what is read as well, and now and then an input or a constant as it is."""
    read = {name for proto in draft.nodes for name in proto.input}
    made = [name for proto in draft.nodes for name in proto.output]
    found = [name for name in made if name not in read or draft.chance(0.15)]
    if not found or draft.chance(0.05):
        found.append(draft.choice(list(draft.inputs)))
    if draft.constants and draft.chance(0.03):
        found.append(draft.choice(list(draft.constants)))
    return [str(name) for name in draft.rng.permutation(found)]


def _open_dimensions(draft: Draft, model: ModelProto) -> dict[str, tuple[int, ...]]:
    """Leave some dimensions of the inputs open; the shapes that close them."""
    if not draft.chance(0.15):
        return {}
    shapes: dict[str, tuple[int, ...]] = {}
    for value in model.graph.input:
        for number, dimension in enumerate(value.type.tensor_type.shape.dim):
            if draft.chance():
                dimension.dim_param = f"{value.name}_{number}"
                shapes[value.name] = draft.shape(value.name)
    return shapes


def _place_constants(draft: Draft, model: ModelProto) -> None:
    """Make nodes of some initializers, and inputs with a default of others."""
    nodes: list[NodeProto] = []
    outputs = {value.name for value in model.graph.output}
    for tensor in list(model.graph.initializer):
        if draft.chance(0.3):
            nodes.append(onnx.helper.make_node("Constant", [], [tensor.name], value=tensor))
            model.graph.initializer.remove(tensor)
        elif tensor.name not in outputs and draft.chance(0.02):
            info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            model.graph.input.append(info)
    old = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*nodes, *old])


def _constants(model: ModelProto) -> set[str]:
    return {tensor.name for tensor in model.graph.initializer}
