"""An ONNX model as a torch module: each node becomes the call that a torch model would make there.

As a person would prepare the model for speed, images and weights are channels last, a batch norm is folded into the
convolution before it, and a product with its bias is one Linear. All else runs as it is written, one call after the
other. `torch_operators` has the calls; a model with an operator or a form that has none is refused.

torch is imported in the functions, so that the module can be read without it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto

from tilewright.peers.torch_graph import NodeCall, NotConvertibleError, Writer
from tilewright.peers.torch_operators import CALLS

_FIRST_OPSET = 13


def module_of(model: ModelProto) -> tuple[Any, list[str]]:
    """The module, which gives a tuple of the outputs, and the names of its arguments in order.

    Raises NotConvertibleError, which says what has no call here.
    """
    check_convertible(model)
    from torch import fx

    writer = _begin(model)
    names = _write_inputs(model, writer)
    for node in model.graph.node:
        call = NodeCall(node, writer)
        if node.op_type == "Constant":
            writer.constants[node.output[0]] = call.attribute("value", None)
            continue
        if len(node.output) > 1:
            raise call.refused("only its first output has a call in torch here")
        writer.values[node.output[0]] = CALLS[node.op_type](call)
    writer.graph.output(tuple(writer.value(output.name) for output in model.graph.output))
    _make_channels_last(writer.root)
    return fx.GraphModule(writer.root, writer.graph).eval(), names


def check_convertible(model: ModelProto) -> None:
    """Raise NotConvertibleError where the opset or an operator has no translation; torch need not be there."""
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version < _FIRST_OPSET:
            raise NotConvertibleError(f"the model is of opset {opset.version}, below {_FIRST_OPSET}")
    missing = [node.op_type for node in model.graph.node if not _is_translated(node)]
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        what = "operator" if len(set(missing)) == 1 else "operators"
        raise NotConvertibleError(f"no translation of the {what} {names} in tilewright/peers/torch_operators.py")


def _is_translated(node: NodeProto) -> bool:
    return node.op_type == "Constant" or (not node.domain and node.op_type in CALLS)


def _begin(model: ModelProto) -> Writer:
    from torch import fx, nn

    uses = Counter(name for node in model.graph.node for name in node.input)
    uses.update(output.name for output in model.graph.output)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    return Writer(fx.Graph(), nn.Module(), constants, uses)


def _write_inputs(model: ModelProto, writer: Writer) -> list[str]:
    values = [value for value in model.graph.input if value.name not in writer.constants]
    for position, value in enumerate(values):
        writer.values[value.name] = writer.graph.placeholder(f"input_{position}")
    for value in values:
        tensor = value.type.tensor_type
        memory_format = _channels_last(len(tensor.shape.dim))
        if tensor.elem_type == TensorProto.FLOAT and memory_format is not None:
            writer.values[value.name] = writer.graph.call_method(
                "contiguous", (writer.values[value.name],), {"memory_format": memory_format}
            )
    return [value.name for value in values]


def _channels_last(rank: int) -> Any:
    import torch

    return {4: torch.channels_last, 5: torch.channels_last_3d}.get(rank)


def _make_channels_last(root: Any) -> None:
    from torch import nn

    for module in root.children():
        memory_format = _channels_last(module.weight.ndim)
        if memory_format is not None:
            module.weight = nn.Parameter(module.weight.contiguous(memory_format=memory_format), requires_grad=False)
