"""What each node is, read off its tensor expression: a product, a reduction, or a map from elements to elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from tilewright import te
from tilewright.errors import ExpressionError
from tilewright.graph.graph import ONNX, Graph, Node
from tilewright.graph.operators import Call, NotCompilableError, express
from tilewright.graph.partition.reads import has_data_reuse, is_same_bytes
from tilewright.graph.partition.stages import merge
from tilewright.te import Reduce, Tensor

# Their expressions divide indices, or need not exist.
_RESHAPES = frozenset(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"))


class Kind(Enum):
    """What a node is to its neighbours."""

    PRODUCT = auto()
    """A reduction that reads its operands again and again, such as a convolution: the heart of a kernel."""
    REDUCTION = auto()
    """Any other reduction: a pool, a softmax, a norm."""
    MAP = auto()
    """No reduction: arithmetic on elements, elements moved, or both."""
    OTHER = auto()
    """Several outputs: a kernel by itself."""
    VIEW = auto()
    """The same bytes under another shape."""
    FALLBACK = auto()
    """No tensor expression."""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A node as tensors. `operands` holds a placeholder for each value that it reads; numbers are part of it."""

    kind: Kind
    operands: dict[str, Tensor]
    outputs: tuple[Tensor, ...] = ()
    reason: str = ""

    @property
    def stages(self) -> list[Tensor]:
        return [tensor for tensor in te.topological_order(self.outputs) if tensor.body is not None]


def form_of(node: Node, graph: Graph, wanted: Sequence[str]) -> Form:
    """What the node is; `wanted` are those of its outputs that somebody reads."""
    reason = _unholdable(node, graph, wanted)
    if reason:
        return Form(Kind.FALLBACK, {}, reason=reason)
    if node.op in _RESHAPES and node.domain == ONNX and _has_same_size(graph, node.inputs[0], node.outputs[0]):
        return Form(Kind.VIEW, {})
    values = Operands(graph)
    try:
        tensors = express_node(node, values, wanted, "")
    except NotCompilableError as error:
        return Form(Kind.FALLBACK, {}, reason=str(error))
    reason = _mistyped(graph, tensors)
    if reason:
        return Form(Kind.FALLBACK, {}, reason=reason)
    merged = merge([tensors[name] for name in wanted])
    return Form(_kind(merged), values.placeholders, merged)


def _kind(outputs: Sequence[Tensor]) -> Kind:
    if len(outputs) != 1:
        return Kind.OTHER
    if is_same_bytes(outputs[0]):
        return Kind.VIEW
    stages = [tensor for tensor in te.topological_order(outputs) if tensor.body is not None]
    if any(has_data_reuse(stage) for stage in stages):
        return Kind.PRODUCT
    if any(isinstance(stage.body, Reduce) for stage in stages):
        return Kind.REDUCTION
    return Kind.MAP


def _unholdable(node: Node, graph: Graph, wanted: Sequence[str]) -> str:
    """Why kernels cannot hold what the node reads or writes; empty where they can."""
    for name in (*filter(None, node.inputs), *wanted):
        known = graph.types.get(name)
        if known is None:
            return f"the type of {name} is known only when the network runs"
        if not known.is_compilable:
            return f"{name} is a {known.dtype} tensor of shape {known.shape}, which kernels do not hold"
    return ""


def _has_same_size(graph: Graph, *names: str) -> bool:
    """Whether values have as many elements as each other: a view of more would read what is not there."""
    sizes = {math.prod(known.shape) for name in names if (known := graph.types[name]) is not None}
    return len(sizes) == 1


def _mistyped(graph: Graph, tensors: dict[str, Tensor]) -> str:
    """How the expression disagrees with the types of the graph; empty where it does not."""
    for name, tensor in tensors.items():
        known = graph.types[name]
        if known is None or (known.dtype, known.shape) != (tensor.dtype, tensor.shape):
            return f"its expression gives {tensor.dtype}{tensor.shape} for {name}, but the graph says {known}"
    return ""


class Operands:
    """The tensors of values that nodes read: placeholders, made when first asked for, and results of other nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.placeholders: dict[str, Tensor] = {}
        self.results: dict[str, Tensor] = {}
        self._numbers: dict[str, Tensor] = {}

    def tensor(self, name: str) -> Tensor:
        """The value as a tensor; a constant of one element is the number itself."""
        if name in self.results:
            return self.results[name]
        array = self.graph.constants.get(name)
        if array is not None and array.size == 1:
            return self._number(name)
        if name not in self.placeholders:
            known = self.graph.types[name]
            assert known is not None
            self.placeholders[name] = te.placeholder(
                known.shape, known.dtype, f"v{len(self.placeholders)}", constant=array is not None
            )
        return self.placeholders[name]

    def _number(self, name: str) -> Tensor:
        if name not in self._numbers:
            known = self.graph.types[name]
            assert known is not None
            number = self.graph.constants[name].reshape(-1)[:1]
            if known.dtype == "bfloat16" and number.dtype == np.uint16:
                number = te.bfloat16_to_float32(number)
            constant = te.constant(number[0].item(), known.dtype)
            self._numbers[name] = te.compute(known.shape, lambda *i: constant, f"n{len(self._numbers)}")
        return self._numbers[name]


def express_node(node: Node, operands: Operands, wanted: Sequence[str], prefix: str) -> dict[str, Tensor]:
    """The wanted outputs of the node as tensors."""
    tensors = [operands.tensor(name) if name else None for name in node.inputs]
    values = [operands.graph.constants.get(name) if name else None for name in node.inputs]
    try:
        outputs = express(Call(node, tensors, values, prefix))
    except ExpressionError as error:
        raise NotCompilableError(f"{node.op} has no valid tensor expression here: {error}") from error
    found = {name: tensor for name, tensor in zip(node.outputs, outputs, strict=False) if name in wanted}
    missing = [name for name in wanted if name not in found]
    if missing:
        raise NotCompilableError(f"the tensor expression of {node.op} does not give its output {missing[0]}")
    return found
