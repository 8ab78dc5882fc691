"""Operators of onnxruntime's for the reference evaluator of ONNX: where types are known only when they run.

That is in the branches and bodies of If, Loop and Scan, and behind operators such as NonZero.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from tilewright.graph.contrib import OPSETS, contrib_operators, expand
from tilewright.graph.protos import array_type, node_from_proto


class _Contrib(OpRun):  # type: ignore[misc]
    """Evaluates the nodes that its node stands for, once the types of its operands are known."""

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        node = node_from_proto(self.onnx_node, 1)
        types = [array_type(value) if isinstance(value, np.ndarray) else None for value in inputs]
        numbers = count()
        feeds = {name: value for name, value in zip(node.inputs, inputs, strict=True) if name}
        nodes = expand(node, types, feeds, lambda hint: f"{hint}.expanded.{next(numbers)}")
        if nodes is None:
            raise TypeError(f"an operand of {node.op} is no tensor")
        wanted = [name for name in node.outputs if name]
        graph = onnx.helper.make_graph(
            nodes, node.op, [], [onnx.helper.make_empty_tensor_value_info(name) for name in wanted]
        )
        found = dict(zip(wanted, ReferenceEvaluator(graph, opsets=dict(OPSETS)).run(None, feeds), strict=True))
        return tuple(found.get(name) for name in node.outputs)

    def _check_and_fix_outputs(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return outputs  # with None for those that nobody wants


CONTRIB_OPERATORS: list[type[OpRun]] = [
    type(op, (_Contrib,), {"op_domain": domain}) for domain, op in contrib_operators()
]
