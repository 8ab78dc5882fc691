"""Walks the nodes of a model in order: folds what is constant, infers types, and takes apart what has no kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, NodeProto, TypeProto

from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph import contrib
from tilewright.graph.folding import fold
from tilewright.graph.naming import FreshNames
from tilewright.graph.onnx.arguments import check_operators
from tilewright.graph.onnx.inlining import default_attributes, function_body, inline_branch, inline_function
from tilewright.graph.onnx.normal_forms import normal_form, saved_statistics
from tilewright.graph.onnx.quantized_product import is_quantized_product, quantized_product
from tilewright.graph.packed_weights import packed_product
from tilewright.graph.protos import (
    array_type,
    has_subgraphs,
    node_from_proto,
    normal_domain,
    schema_of,
    static_type,
    type_proto,
)
from tilewright.graph.signatures import BySignature
from tilewright.graph.tensor_protos import check_shape, dense_array, tensor_array
from tilewright.graph.types import Constants, ShapeRuleError, expressed_types, onnx_types
from tilewright.operators import ONNX, Node, NotCompilableError, TensorType, facts_of


@dataclass(frozen=True, slots=True)
class Inferred:
    """What the outputs of a node are, in both forms, and whether a kernel can compute them."""

    protos: tuple[TypeProto | None, ...]
    types: tuple[TensorType | None, ...]
    is_compilable: bool


@dataclass(slots=True)
class Importer:
    """What has been imported so far. `protos` knows more than `types`: sequences, and tensors in part."""

    names: set[str]
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, npt.NDArray[np.generic]] = field(default_factory=dict)
    types: dict[str, TensorType | None] = field(default_factory=dict)
    protos: dict[str, TypeProto] = field(default_factory=dict)
    num_fallbacks: int = 0
    _inferred: BySignature[Inferred] = field(default_factory=BySignature, init=False)
    _of_constants: BySignature[tuple[TensorType | None, ...]] = field(default_factory=BySignature, init=False)
    _fresh: FreshNames = field(init=False)
    _added: list[str] = field(default_factory=list, init=False)
    """The names of values, in the order in which they were added."""

    def __post_init__(self) -> None:
        self._fresh = FreshNames(self.names)

    def add_constant(self, name: str, value: npt.NDArray[np.generic]) -> None:
        self.constants[name] = value
        known = array_type(value)
        self._set_types(name, known, _shared_proto(known))

    def add_initializers(self, graph: GraphProto, renamed: Mapping[str, str]) -> None:
        for tensor in graph.initializer:
            self.add_constant(renamed.get(tensor.name, tensor.name), tensor_array(tensor))
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            self.add_constant(renamed.get(name, name), dense_array(sparse))

    def set_type(self, name: str, proto: TypeProto | None) -> None:
        _check_size(name, proto)
        self._set_types(name, static_type(proto), proto)

    def _set_types(self, name: str, known: TensorType | None, proto: TypeProto | None) -> None:
        self._added.append(name)
        self.types[name] = known
        if proto is not None:
            self.protos[name] = proto

    def add_nodes(self, nodes: Iterable[NodeProto], opsets: Mapping[str, int]) -> None:
        for proto in nodes:
            self._add_node(proto, opsets)

    def _add_node(self, proto: NodeProto, opsets: Mapping[str, int]) -> None:
        node = node_from_proto(proto, opsets.get(normal_domain(proto.domain), 1))
        if (saved := saved_statistics(node, self._fresh_name)) is not None:
            self._append_kernel(saved)
        node = normal_form(node, self.types, self.constants)
        if is_quantized_product(node, self.types, self.constants):
            self._add_quantized_product(node)
            return
        if node.op == "If" and node.domain == ONNX and node.inputs[0] in self.constants:
            self._add_branch(proto, opsets, bool(self.constants[node.inputs[0]]))
            return
        if schema_of(node) is None and contrib.is_contrib(node.domain, node.op) and self._add_contrib(node):
            return
        if self._fold_at_once(node):
            return
        try:
            inferred = self._infer(node)
        except ModelError:
            # ONNX's inference is stricter than its evaluator, which takes [1] for a scalar.
            if not self._fold(node, (None,) * len(node.outputs)):
                raise
            return
        if self._fold(node, inferred.types):
            return
        if not inferred.is_compilable and self._expand(node, proto):
            return
        self._append(node, inferred)

    def _append(self, node: Node, inferred: Inferred) -> None:
        self.num_fallbacks += not inferred.is_compilable
        self.nodes.append(node)
        for name, known, output in zip(node.outputs, inferred.types, inferred.protos, strict=True):
            if name:
                self._set_types(name, known, output)

    def _add_quantized_product(self, node: Node) -> None:
        """A product with weights of few bits, and what it takes before and after."""
        product = quantized_product(node, self.types, self.constants)
        data, output, weights = product.data, node.outputs[0], product.weights
        total = self._fresh_name(output) if product.bias else output
        if product.order is not None:
            order = self._new_constant(product.order, f"{node.inputs[1]}.order")
            data = self._fresh_name(data)
            self._append_kernel(Node("Gather", (product.data, order), (data,), {"axis": -1}, node.name, opset=13))
        if product.is_packed:
            operands = [self._new_constant(value, node.inputs[1]) for value in weights.operands]
            self._append_kernel(packed_product(data, operands, weights, total, like=node))
        else:
            floats = self._new_constant(weights.floats.astype(product.dtype), node.inputs[1])
            self._append_kernel(Node("MatMul", (data, floats), (total,), {}, node.name, opset=13))
        if product.bias:
            self._append_kernel(Node("Add", (total, product.bias), (output,), {}, node.name, opset=14))

    def _new_constant(self, value: npt.NDArray[np.generic], hint: str) -> str:
        name = self._fresh_name(hint)
        self.add_constant(name, value)
        return name

    def _append_kernel(self, node: Node) -> None:
        """Add a node that a kernel has to compute."""
        self._append(node, self._infer(node))

    def _fold(self, node: Node, output_types: tuple[TensorType | None, ...]) -> bool:
        """Make constants of the outputs of a node, if they are known ahead."""
        if node.op == "DequantizeLinear" and not self._is_scalar(node.inputs[0]):
            return False  # a pass may want the integers of weights
        folded = fold(node, self.types, self.constants, output_types)
        if folded is None:
            return False
        for name, value in zip(node.outputs, folded, strict=True):
            if name and value is not None:
                self.add_constant(name, value)
        return True

    def _is_scalar(self, name: str) -> bool:
        """No weight, but often a size in floats, which quantizers take for data."""
        known = self.types.get(name)
        return known is not None and known.shape == ()

    def _fold_at_once(self, node: Node) -> bool:
        """Fold a node of constants without asking how a kernel would compute it."""
        if node.op == "Constant" and node.domain == ONNX and len(node.attributes) == 1:
            return self._fold(node, (None,) * len(node.outputs))
        if not node.inputs or not all(name in self.constants or not name for name in node.inputs):
            return False
        try:
            types = self._of_constants.get(node, self.types, self.constants, lambda values: self._types(node, values))
        except ModelError:
            return False
        return None not in types and self._fold(node, types)

    def _types(self, node: Node, constants: Constants) -> tuple[TensorType | None, ...]:
        return tuple(static_type(output) for output in onnx_types(node, self.protos, constants))

    def _infer(self, node: Node) -> Inferred:
        """The types of the outputs, which equal nodes have in common."""
        open_ = [self.protos[name] for name in node.inputs if self.types.get(name) is None and name in self.protos]
        more = tuple([proto.SerializeToString(deterministic=True) for proto in open_])
        return self._inferred.get(
            node, self.types, self.constants, lambda constants: self._infer_anew(node, constants), more
        )

    def _infer_anew(self, node: Node, constants: Constants) -> Inferred:
        refusal: ShapeRuleError | None = None
        inferred: tuple[TypeProto | None, ...] = (None,) * len(node.outputs)
        try:
            inferred = onnx_types(node, self.protos, constants)
        except ShapeRuleError as error:
            if not facts_of(node).checks_shapes and not has_subgraphs(node):
                raise
            # What subgraphs say of their values binds nobody: the types stay open.
            refusal = None if has_subgraphs(node) else error
        for name, output in zip(node.outputs, inferred, strict=True):
            _check_size(name, output)
        try:
            expressed = expressed_types(node, self.types, constants)
        except NotCompilableError:
            if refusal is not None:
                raise refusal from None
            return Inferred(inferred, tuple(static_type(output) for output in inferred), is_compilable=False)
        for name, known in zip(node.outputs, expressed, strict=True):
            check_shape(f"the value {name}", () if known is None else known.shape)
        protos = tuple(None if known is None else _shared_proto(known) for known in expressed)
        return Inferred(protos, expressed, is_compilable=True)

    def _add_contrib(self, node: Node) -> bool:
        """Import the nodes of ONNX for one of onnxruntime's, if enough is known of its operands."""
        body = contrib.expand(node, [self.types.get(name) for name in node.inputs], self.constants, self._fresh_name)
        if body is None:
            return False
        self.add_nodes(body, contrib.OPSETS)
        return True

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
        state = len(self._added), len(self.nodes), self.num_fallbacks
        body = inline_function(function, proto, default_attributes(node), self._fresh_name)
        try:
            self.add_nodes(body.nodes, body.opsets)
        except (ModelError, UnsupportedOperatorError):
            self._undo(*state)
            return False
        if self.num_fallbacks > state[-1]:
            self._undo(*state)
            return False
        return True

    def _undo(self, num_added: int, num_nodes: int, num_fallbacks: int) -> None:
        """Forget what has been added since there were as many values and nodes; names stay taken."""
        for name in self._added[num_added:]:
            for values in (self.constants, self.types, self.protos):
                values.pop(name, None)
        del self._added[num_added:], self.nodes[num_nodes:]
        self.num_fallbacks = num_fallbacks

    def _fresh_name(self, base: str) -> str:
        name = self._fresh(base)
        self.names.add(name)
        return name


@lru_cache(maxsize=1 << 12)
def _shared_proto(known: TensorType) -> TypeProto:
    """The message of a type, which nobody changes."""
    return type_proto(known)


def _check_size(name: str, proto: TypeProto | None) -> None:
    """The dimensions that are known are not more than a machine holds."""
    if proto is not None:
        known = [dim.dim_value for dim in proto.tensor_type.shape.dim if dim.HasField("dim_value")]
        check_shape(f"the value {name}", known)
