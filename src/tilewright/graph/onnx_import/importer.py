"""Walks the nodes of a model in order: folds what is constant, infers types, and takes apart what has no kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx
from onnx import GraphProto, NodeProto, TypeProto

from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.folding import fold
from tilewright.graph.graph import ONNX, Node, TensorType
from tilewright.graph.onnx_import.inlining import (
    default_attributes,
    function_body,
    inline_branch,
    inline_function,
)
from tilewright.graph.onnx_import.normal_forms import normal_form
from tilewright.graph.onnx_import.structure import check_operators
from tilewright.graph.onnx_protos import (
    array_type,
    dense_array,
    node_from_proto,
    normal_domain,
    static_type,
    type_proto,
)
from tilewright.graph.operators import NotCompilableError
from tilewright.graph.types import expressed_types, onnx_types


@dataclass(slots=True)
class Importer:
    """What has been imported so far. `protos` knows more than `types`: sequences, and tensors in part."""

    names: set[str]
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, npt.NDArray[np.generic]] = field(default_factory=dict)
    types: dict[str, TensorType | None] = field(default_factory=dict)
    protos: dict[str, TypeProto] = field(default_factory=dict)
    num_fallbacks: int = 0

    def add_constant(self, name: str, value: npt.NDArray[np.generic]) -> None:
        self.constants[name] = value
        self.set_type(name, type_proto(array_type(value)))

    def add_initializers(self, graph: GraphProto, renamed: Mapping[str, str]) -> None:
        for tensor in graph.initializer:
            self.add_constant(renamed.get(tensor.name, tensor.name), _array(tensor))
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            self.add_constant(renamed.get(name, name), dense_array(sparse))

    def set_type(self, name: str, proto: TypeProto | None) -> None:
        self.types[name] = static_type(proto)
        if proto is not None:
            self.protos[name] = proto

    def add_nodes(self, nodes: Iterable[NodeProto], opsets: Mapping[str, int]) -> None:
        for proto in nodes:
            self._add_node(proto, opsets)

    def _add_node(self, proto: NodeProto, opsets: Mapping[str, int]) -> None:
        node = node_from_proto(proto, opsets.get(normal_domain(proto.domain), 1))
        node = normal_form(node, self.types, self.constants)
        if node.op == "If" and node.domain == ONNX and node.inputs[0] in self.constants:
            self._add_branch(proto, opsets, bool(self.constants[node.inputs[0]]))
            return
        try:
            outputs, is_compilable = self._infer(node)
        except ModelError:
            # ONNX's inference is stricter than its evaluator, which takes [1] for a scalar.
            if not self._fold(node, (None,) * len(node.outputs)):
                raise
            return
        if self._fold(node, tuple(static_type(output) for output in outputs)):
            return
        if not is_compilable and self._expand(node, proto):
            return
        self.num_fallbacks += not is_compilable
        self.nodes.append(node)
        for name, output in zip(node.outputs, outputs, strict=True):
            if name:
                self.set_type(name, output)

    def _fold(self, node: Node, output_types: tuple[TensorType | None, ...]) -> bool:
        """Make constants of the outputs of a node, if they are known ahead."""
        folded = fold(node, self.types, self.constants, output_types)
        if folded is None:
            return False
        for name, value in zip(node.outputs, folded, strict=True):
            if name and value is not None:
                self.add_constant(name, value)
        return True

    def _infer(self, node: Node) -> tuple[tuple[TypeProto | None, ...], bool]:
        """The types of the outputs, and whether a kernel can compute them."""
        inferred = onnx_types(node, self.protos, self.constants)
        try:
            expressed = expressed_types(node, self.types, self.constants)
        except NotCompilableError:
            return inferred, False
        return tuple(None if known is None else type_proto(known) for known in expressed), True

    def _add_branch(self, proto: NodeProto, opsets: Mapping[str, int], is_taken: bool) -> None:
        """The branch of an If that is known to be taken."""
        wanted = "then_branch" if is_taken else "else_branch"
        branch = next(attribute.g for attribute in proto.attribute if attribute.name == wanted)
        nodes, renamed = inline_branch(branch, proto.output, self._fresh_name)
        self.add_initializers(branch, renamed)
        check_operators(nodes, dict(opsets))
        self.add_nodes(nodes, opsets)

    def _expand(self, node: Node, proto: NodeProto) -> bool:
        """Import the nodes by which ONNX defines an operator instead of it, if kernels can compute all of them."""
        function = function_body(node, proto, [self.protos.get(name) for name in proto.input])
        if function is None:
            return False
        trial = self._copy()
        body = inline_function(function, proto, default_attributes(node), trial._fresh_name)
        try:
            trial.add_nodes(body.nodes, body.opsets)
        except (ModelError, UnsupportedOperatorError):
            return False
        if trial.num_fallbacks > self.num_fallbacks:
            return False
        self._become(trial)
        return True

    def _copy(self) -> Importer:
        return Importer(
            set(self.names),
            list(self.nodes),
            dict(self.constants),
            dict(self.types),
            dict(self.protos),
            self.num_fallbacks,
        )

    def _become(self, other: Importer) -> None:
        self.names, self.nodes, self.constants = other.names, other.nodes, other.constants
        self.types, self.protos, self.num_fallbacks = other.types, other.protos, other.num_fallbacks

    def _fresh_name(self, base: str) -> str:
        name, number = base, 1
        while name in self.names:
            number += 1
            name = f"{base}.{number}"
        self.names.add(name)
        return name


def _array(tensor: onnx.TensorProto) -> npt.NDArray[np.generic]:
    try:
        value: npt.NDArray[np.generic] = onnx.numpy_helper.to_array(tensor)
    except (KeyError, ValueError, TypeError) as error:
        raise ModelError(
            f"the constant {tensor.name} of the model does not hold the data it should: {error}; export the model again"
        ) from error
    return value
