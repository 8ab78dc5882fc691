"""Operators that onnxruntime has beside those of ONNX, written in these.

Its optimizers and quantizers leave them in the models that they save. `expand` gives the nodes of ONNX that compute the
same as one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import NodeProto
from onnx.helper import make_node

from tilewright.errors import ModelError
from tilewright.graph.contrib import (
    attention,
    blocked,
    experimental,
    experts,
    fused,
    grouped_attention,
    normalization,
    quantized,
    weights,
)
from tilewright.graph.contrib.call import Call, Expansion, OpenValueError
from tilewright.graph.protos import CONTRIB, CONTRIB_BLOCKED
from tilewright.graph.types import Constants
from tilewright.operators import ONNX, Node, TensorType

__all__ = ["OPSETS", "contrib_operators", "expand", "is_contrib"]

OPSETS: Mapping[str, int] = {"": 23}
"""What the nodes of an expansion are written for."""

_EXPANSIONS: dict[str, dict[str, Expansion]] = {
    CONTRIB: {
        **fused.EXPANSIONS,
        **normalization.EXPANSIONS,
        **attention.EXPANSIONS,
        **grouped_attention.EXPANSIONS,
        **quantized.EXPANSIONS,
        **weights.EXPANSIONS,
        **experts.EXPANSIONS,
    },
    CONTRIB_BLOCKED: blocked.EXPANSIONS,
    # ONNX has a LayerNormalization since opset 17 and a ThresholdedRelu since 10, and the others no more or not yet.
    ONNX: {**normalization.IN_DOMAIN_OF_ONNX, **experimental.EXPANSIONS},
}

_EVALUATED = frozenset([(CONTRIB, "Inverse"), (CONTRIB, "Tokenizer")])
"""What operators of ONNX cannot say: these are run by `graph/evaluation` alone."""

# What an expansion may come to if attributes or shapes are not those of its operator.
_MISFITS = (ArithmeticError, LookupError, TypeError, ValueError)


def is_contrib(domain: str, op: str) -> bool:
    """Whether this operator, which ONNX does not have, is known here."""
    return op in _EXPANSIONS.get(domain, ()) or (domain, op) in _EVALUATED


def contrib_operators() -> list[tuple[str, str]]:
    """The domains and names of the operators that can be written in those of ONNX."""
    return [(domain, op) for domain, expansions in _EXPANSIONS.items() for op in expansions]


def expand(
    node: Node, types: Sequence[TensorType | None], constants: Constants, fresh: Callable[[str], str]
) -> list[NodeProto] | None:
    """The nodes of ONNX that compute the outputs of a contrib node.

    None if they depend on the type of an input, or on its value, and that is not known, or if there are none.
    """
    if (node.domain, node.op) in _EVALUATED:
        return None
    known = [TensorType("float32", ()) if not name else type_ for name, type_ in zip(node.inputs, types, strict=True)]
    given = [type_ for type_ in known if type_ is not None]
    if len(given) < len(known):
        return None
    call = Call(node, given, fresh, constants)
    try:
        results = _EXPANSIONS[node.domain][node.op](call)
    except OpenValueError:
        return None
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
