"""Operators that onnxruntime has beside those of ONNX, written in these.

Its optimizers and quantizers leave them in the models that they save. `expand` gives the nodes of ONNX that compute the
same as one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import NodeProto
from onnx.helper import make_node

from tilewright.errors import ModelError
from tilewright.graph.contrib import attention, fused, normalization, quantized, weights
from tilewright.graph.contrib.call import Call, Expansion
from tilewright.graph.protos import CONTRIB
from tilewright.operators import Node, TensorType

__all__ = ["IN_DOMAIN_OF_ONNX", "OPSETS", "contrib_names", "expand", "is_contrib"]

OPSETS: Mapping[str, int] = {"": 23}
"""What the nodes of an expansion are written for."""

_EXPANSIONS: dict[str, Expansion] = {
    **fused.EXPANSIONS,
    **normalization.EXPANSIONS,
    **attention.EXPANSIONS,
    **quantized.EXPANSIONS,
    **weights.EXPANSIONS,
}

# These stand in the domain of ONNX, which has the first one since opset 17 and the second one not at all.
IN_DOMAIN_OF_ONNX = ("LayerNormalization", "SimplifiedLayerNormalization")

# What an expansion may come to if attributes or shapes are not those of its operator.
_MISFITS = (ArithmeticError, LookupError, TypeError, ValueError)


def is_contrib(domain: str, op: str) -> bool:
    """Whether this operator, which ONNX does not have, is known here."""
    return op in _EXPANSIONS if domain == CONTRIB else domain == "" and op in IN_DOMAIN_OF_ONNX


def contrib_names() -> list[str]:
    """The operators of the domain that are known."""
    return sorted(_EXPANSIONS.keys() - set(IN_DOMAIN_OF_ONNX))


def expand(node: Node, types: Sequence[TensorType | None], fresh: Callable[[str], str]) -> list[NodeProto] | None:
    """The nodes of ONNX that compute the outputs of a contrib node; None if the type of an input is not known."""
    known = [TensorType("float32", ()) if not name else type_ for name, type_ in zip(node.inputs, types, strict=True)]
    given = [type_ for type_ in known if type_ is not None]
    if len(given) < len(known):
        return None
    call = Call(node, given, fresh)
    try:
        results = _EXPANSIONS[node.op](call)
    except _MISFITS as error:
        inputs = ", ".join(f"{type_.dtype}{list(type_.shape)}" for type_ in given)
        raise ModelError(
            f"node {node} ({node.op}) does not fit its attributes and inputs {inputs}: {error}; correct the model, or "
            f"the shapes given for its inputs"
        ) from error
    for position, wanted in enumerate(node.outputs):
        if not wanted:
            continue
        if position >= len(results) or not results[position]:
            raise call.unsupported(f"its output {wanted} is not known here")
        call.nodes.append(make_node("Identity", [results[position]], [wanted]))
    return call.nodes
