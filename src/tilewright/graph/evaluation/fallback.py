"""Runs a node that has no tensor expression on the reference evaluator of ONNX."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.evaluation.operators import OPERATORS
from tilewright.graph.protos import (
    array_type,
    captures_of,
    latest_opsets,
    node_to_proto,
    schema_of,
    static_type,
    type_proto,
)
from tilewright.graph.signatures import attributes_key
from tilewright.graph.types import onnx_types
from tilewright.operators import Node, TensorType

# The evaluator is plain NumPy code: what it cannot do, or what does not fit together, shows as one of these.
_EVALUATOR_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class FallbackOperator:
    """One node, ready to run on arrays; sequences are lists, and bfloat16 is `ml_dtypes.bfloat16`.

    A result may share the memory of an input.
    """

    def __init__(self, node: Node, output_types: Sequence[TensorType | None] = ()) -> None:
        """Results are converted to the element types of `output_types` where those are known."""
        self.node = node
        self._output_types = (*output_types, *[None] * (len(node.outputs) - len(output_types)))
        captures = captures_of(node)
        own_inputs = node.inputs[: len(node.inputs) - len(captures)]
        # Names of our own: the same value may be read twice, and may be known to the subgraphs by yet another name.
        prefix = _prefix_of_none("tilewright.operand.", captures)
        self._operands = [f"{prefix}{i}" if name else "" for i, name in enumerate(own_inputs)]
        self._operands.extend(captures)
        self._evaluator = _evaluator(node, tuple(self._operands))
        self._same_types = _same_types(node)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, one for each of the node's; None for those that nobody wants."""
        feeds = {name: value for name, value in zip(self._operands, inputs, strict=True) if name}
        try:
            with np.errstate(all="ignore"):
                return self._results(self._evaluator.run(None, feeds), inputs)
        except _EVALUATOR_ERRORS as error:
            nothing = _outputs_of_nothing(self.node, inputs)
            if nothing is not None:
                return nothing
            shapes = ", ".join(str(array_type(x)) if isinstance(x, np.ndarray) else type(x).__name__ for x in inputs)
            raise ModelError(
                f"node {self.node} ({self.node.op}) failed in the reference evaluator of ONNX on inputs {shapes}: "
                f"{error}; check that they fit the operator"
            ) from error

    def _results(self, found: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        wanted = iter(found)
        results: list[Any] = []
        for name, type_, same in zip(self.node.outputs, self._output_types, self._same_types, strict=True):
            if not name:
                results.append(None)
            elif type_ is not None or same is None or not isinstance(inputs[same], np.ndarray):
                results.append(_converted(next(wanted), type_))
            else:
                results.append(_converted(next(wanted), array_type(inputs[same])))
        return results


def _same_types(node: Node) -> list[int | None]:
    """For each output an operand that has its element type, where ONNX says so: NumPy sums integers in wider ones."""
    schema = schema_of(node)
    if schema is None or not schema.outputs:
        return [None] * len(node.outputs)
    first: dict[str, int] = {}
    for position, formal in enumerate(schema.inputs[: len(node.inputs)]):
        if formal.is_homogeneous and node.inputs[position]:
            first.setdefault(formal.type_str, position)
    formals = [schema.outputs[min(i, len(schema.outputs) - 1)] for i in range(len(node.outputs))]
    return [first.get(formal.type_str) if formal.is_homogeneous else None for formal in formals]


def _outputs_of_nothing(node: Node, inputs: Sequence[Any]) -> list[Any] | None:
    """The outputs, if they hold no elements because operands do not: the evaluator need not know what to do then.

    So it is where a network has found no box, and goes on with what is in none.
    """
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    if captures_of(node) or len(arrays) < sum(map(bool, node.inputs)) or all(x.size for x in arrays):
        return None
    constants = {name: x for name, x in zip(node.inputs, inputs, strict=True) if name}
    protos = {name: type_proto(array_type(x)) for name, x in constants.items()}
    try:
        types = [static_type(proto) for proto in onnx_types(node, protos, constants)]
    except ModelError:
        return None
    return empty_outputs(node, types)


def empty_outputs(node: Node, types: Sequence[TensorType | None]) -> list[Any] | None:
    """Outputs of these types, if none of them holds an element, which need no computation."""
    found: list[Any] = []
    for name, type_ in zip(node.outputs, types, strict=True):
        if not name:
            found.append(None)
        elif type_ is None or 0 not in type_.shape:
            return None
        else:
            found.append(np.empty(type_.shape, object if type_.dtype == "string" else type_.dtype))
    return found


def _prefix_of_none(prefix: str, names: Sequence[str]) -> str:
    """The prefix, longer if need be, so that none of the names begins with it."""
    while any(name.startswith(prefix) for name in names):
        prefix += "."
    return prefix


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """A node that is evaluated; what it has in common with others is compared, its names are not."""

    key: Hashable
    node: Node = field(compare=False)
    operands: tuple[str, ...] = field(compare=False)


def _evaluator(node: Node, operands: tuple[str, ...]) -> ReferenceEvaluator:
    """The evaluator of a node, which equal nodes share: shapes are computed by many small ones."""
    attributes = attributes_key(node)
    evaluation = _Evaluation((), node, operands)
    if attributes is None or any(isinstance(value, np.ndarray) for value in node.attributes.values()):
        return _make_evaluator(evaluation)
    key = (node.domain, node.op, node.opset, attributes, operands, tuple(map(bool, node.outputs)))
    return _shared_evaluator(replace(evaluation, key=key))


def _make_evaluator(evaluation: _Evaluation) -> ReferenceEvaluator:
    node, operands = evaluation.node, evaluation.operands
    proto = node_to_proto(node)
    del proto.input[:], proto.output[:]
    proto.input.extend(operands[: len(node.inputs) - len(captures_of(node))])
    proto.output.extend(f"tilewright.result.{i}" if name else "" for i, name in enumerate(node.outputs))
    wanted = [onnx.helper.make_empty_tensor_value_info(name) for name in proto.output if name]
    # No inputs are declared: operators defined by their operands' types then look at the arrays themselves.
    graph = onnx.helper.make_graph([proto], node.op, [], wanted)
    opsets = {**latest_opsets(), node.domain: node.opset}
    try:
        return ReferenceEvaluator(graph, opsets=opsets, new_ops=OPERATORS)
    except _EVALUATOR_ERRORS as error:
        raise UnsupportedOperatorError(
            f"node {node} ({node.op}, opset {node.opset}) is not known to the reference evaluator of ONNX either: "
            f"{error}; replace the operator in the model by others that compute the same"
        ) from error


_shared_evaluator = lru_cache(maxsize=1 << 9)(_make_evaluator)


def run_fallback(node: Node, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a node; make a FallbackOperator to run it more than once."""
    return FallbackOperator(node)(inputs)


def _converted(value: Any, wanted: TensorType | None) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if wanted is None or wanted.dtype in ("string", value.dtype.name):
        return value
    return value.astype(wanted.dtype)
