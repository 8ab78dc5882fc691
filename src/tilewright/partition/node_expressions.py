"""What each node is, read off its tensor expression: a product, a reduction, or a map from elements to elements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from tilewright import te
from tilewright.errors import ExpressionError
from tilewright.graph.graph import Graph
from tilewright.graph.signatures import BySignature
from tilewright.graph.types import Constants, Types
from tilewright.operators import Call, KnownValues, Node, NotCompilableError, express, facts_of
from tilewright.partition.stage_analysis import (
    common_prefix,
    has_data_reuse,
    is_affine_move,
    is_costly,
    is_padding,
    is_same_bytes,
    num_cases,
)
from tilewright.partition.stages import merge
from tilewright.te import Expr, Read, Reduce, Tensor


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


@dataclass(frozen=True, eq=False)
class NodeExpression:
    """A node as tensors; nodes that differ in names alone share it.

    `operands` holds a placeholder for each input; None for one that is left out, and for numbers, which are part of it.
    """

    kind: Kind
    operands: tuple[Tensor | None, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    reason: str = ""

    @cached_property
    def stages(self) -> list[Tensor]:
        return [tensor for tensor in te.topological_order(self.outputs) if tensor.body is not None]

    @cached_property
    def reads(self) -> list[tuple[Tensor, Read]]:
        """Every read, with the stage that it is in."""
        return [(stage, read) for stage in self.stages for read in _reads(stage)]

    @cached_property
    def num_reads(self) -> list[tuple[int, int]]:
        """The position of each operand that is a tensor, of one used twice the first; and how many reads of it."""
        counted = Counter(read.tensor for _, read in self.reads)
        first = {
            tensor: position for position, tensor in reversed(list(enumerate(self.operands))) if tensor is not None
        }
        return [(position, counted[tensor]) for tensor, position in first.items()]

    @cached_property
    def movement(self) -> Read | None:
        """What each element of the result is read from, if the node moves elements and does nothing else."""
        (stage,) = self.outputs
        return stage.body if isinstance(stage.body, Read) and is_affine_move(stage.body) else None

    @cached_property
    def is_padding(self) -> bool:
        """Whether the node moves elements and fills the rest with a number."""
        return len(self.stages) == 1 and self.stages[0].body is not None and is_padding(self.stages[0].body)

    @cached_property
    def is_cheap(self) -> bool:
        """Whether the node may as well be computed twice."""
        return len(self.stages) == 1 and self.stages[0].body is not None and not is_costly(self.stages[0].body)

    @cached_property
    def num_cases(self) -> int:
        """How often the node chooses by the place of an element."""
        return num_cases(self.stages)

    @cached_property
    def depth(self) -> int:
        """How deep the expression is, with its stages written into each other."""
        return sum(_depth(stage) for stage in self.stages)

    @cached_property
    def num_row_axes(self) -> int:
        """The leading axes along which the stages read each other."""
        inside = [common_prefix(read, stage.axes) for stage, read in self.reads if read.tensor in self.stages]
        return min(*inside, *(stage.ndim for stage in self.stages), 1 << 30)


def _reads(stage: Tensor) -> list[Read]:
    assert stage.body is not None
    return te.collect_reads(stage.body)


def _depth(stage: Tensor) -> int:
    assert stage.body is not None
    depths: dict[Expr, int] = {}

    def measure(e: Expr) -> None:
        depths[e] = 1 + max((depths[operand] for operand in te.children(e)), default=0)

    te.rewrite(stage.body, measure)  # which goes from the operands up
    return depths[stage.body]


class NodeExpressions:
    """What the nodes of a network are, which is asked for in the order in which they run."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        # Of values whose type is not known ahead, the operator that this comes from: a NonZero, say.
        self._origins: dict[str, str] = {}
        self._known: BySignature[NodeExpression] = BySignature()
        self._view = NodeExpression(Kind.VIEW)

    def of(self, node: Node, wanted: Sequence[str]) -> NodeExpression:
        """What the node is; `wanted` are those of its outputs that somebody reads."""
        graph = self._graph
        self._add_origins(node, wanted)
        reason = _unholdable(node, graph, wanted, self._origins)
        if reason:
            return NodeExpression(Kind.FALLBACK, reason=reason)
        # The expressions of reshapes divide indices, or need not exist.
        if facts_of(node).reshapes and _has_same_size(graph, node.inputs[0], node.outputs[0]):
            return self._view
        if facts_of(node).reinterprets:
            return self._view
        first: dict[str, int] = {}
        same = tuple([first.setdefault(name, position) for position, name in enumerate(node.inputs)])
        results = tuple([graph.types.get(name) if name in wanted else None for name in node.outputs])
        try:
            return self._known.get(
                node,
                graph.types,
                graph.constants,
                lambda constants: _expression(node, Operands(graph.types, constants), wanted),
                (same, results),
            )
        except NotCompilableError as error:
            return NodeExpression(Kind.FALLBACK, reason=str(error))

    def _add_origins(self, node: Node, wanted: Sequence[str]) -> None:
        origin = next((self._origins[name] for name in node.inputs if name in self._origins), node.op)
        self._origins.update((name, origin) for name in wanted if self._graph.types.get(name) is None)


def _expression(node: Node, operands: Operands, wanted: Sequence[str]) -> NodeExpression:
    tensors = express_node(node, operands, wanted, "")
    _check_types(operands.types, tensors)
    merged = merge([tensors[name] for name in wanted])
    return NodeExpression(_kind(merged), tuple(operands.placeholders.get(name) for name in node.inputs), merged)


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


def _unholdable(node: Node, graph: Graph, wanted: Sequence[str], origins: Mapping[str, str]) -> str:
    """Why kernels cannot hold what the node reads or writes; empty where they can.

    Constants are not asked: an expression may need no more than their values, such as the empty shape of a scalar.
    """
    for name in filter(None, node.inputs):
        if graph.types.get(name) is None and name in origins:
            return f"it reads {name}, whose type is known only when {origins[name]} has run"
    for name in (*filter(None, node.inputs), *wanted):
        known = graph.types.get(name)
        if known is None:
            return f"the type of {name} is known only when the network runs"
        if not known.is_compilable and name not in graph.constants:
            return f"{name} is a {known.dtype} tensor of shape {known.shape}, which kernels do not hold"
    return ""


def _has_same_size(graph: Graph, *names: str) -> bool:
    """Whether values have as many elements as each other: a view of more would read what is not there."""
    sizes = {math.prod(known.shape) for name in names if (known := graph.types[name]) is not None}
    return len(sizes) == 1


def _check_types(types: Types, tensors: dict[str, Tensor]) -> None:
    """The expression agrees with the types of the graph."""
    for name, tensor in tensors.items():
        known = types[name]
        if known is None or (known.dtype, known.shape) != (tensor.dtype, tensor.shape):
            raise NotCompilableError(
                f"its expression gives {tensor.dtype}{tensor.shape} for {name}, but the graph says {known}"
            )


class Operands:
    """The tensors of values that nodes read: placeholders, made when first asked for, and results of other nodes."""

    def __init__(self, types: Types, constants: Constants) -> None:
        self.types = types
        self.constants = constants
        self.placeholders: dict[str, Tensor] = {}
        self.results: dict[str, Tensor] = {}
        self._numbers: dict[str, Tensor] = {}

    def tensor(self, name: str) -> Tensor | None:
        """The value as a tensor; a constant of one element is the number itself, and one of none has no tensor."""
        if name in self.results:
            return self.results[name]
        known = self.types[name]
        assert known is not None
        if not known.is_compilable:
            return None
        is_constant = name in self.constants
        if is_constant and math.prod(known.shape) == 1:
            return self._number(name)
        if name not in self.placeholders:
            self.placeholders[name] = te.placeholder(
                known.shape, known.dtype, f"v{len(self.placeholders)}", constant=is_constant
            )
        return self.placeholders[name]

    def _number(self, name: str) -> Tensor:
        if name not in self._numbers:
            known = self.types[name]
            assert known is not None
            constant = te.constant(self.constants[name].item(), known.dtype)
            self._numbers[name] = te.compute(known.shape, lambda *i: constant, f"n{len(self._numbers)}")
        return self._numbers[name]


def express_node(node: Node, operands: Operands, wanted: Sequence[str], prefix: str) -> dict[str, Tensor]:
    """The wanted outputs of the node as tensors."""
    tensors = [operands.tensor(name) if name else None for name in node.inputs]
    try:
        outputs = express(Call(node, tensors, KnownValues(node, operands.constants), prefix))
    except ExpressionError as error:
        raise NotCompilableError(f"{node.op} has no valid tensor expression here: {error}") from error
    found = {name: tensor for name, tensor in zip(node.outputs, outputs, strict=False) if name in wanted}
    missing = [name for name in wanted if name not in found]
    if missing:
        raise NotCompilableError(f"the tensor expression of {node.op} does not give its output {missing[0]}")
    return found
