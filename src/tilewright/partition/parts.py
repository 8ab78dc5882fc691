"""What a network is cut into: kernels of one node or several, views that cost nothing, and fallbacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilewright.graph.graph import Graph
from tilewright.operators import Node
from tilewright.te import Task
from tilewright.tuning.task_scheduler.network import WeightedTask


@dataclass(frozen=True, slots=True, eq=False)
class KernelPart:
    """Nodes that are computed by one kernel. `inputs` and `outputs` name values of the graph in the task's order.

    Inputs that are constants of the graph are constant placeholders of the task.
    """

    nodes: tuple[Node, ...]
    task: Task
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The bytes of `input` under another shape: a reshape, which computes nothing."""

    node: Node
    input: str
    output: str


@dataclass(frozen=True, slots=True, eq=False)
class Fallback:
    """A node without a tensor expression: the reference evaluator of ONNX runs it. `reason` says why."""

    node: Node
    reason: str


Part: TypeAlias = KernelPart | View | Fallback


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A network as parts, in an order in which they can run."""

    graph: Graph
    parts: tuple[Part, ...]

    @property
    def kernels(self) -> tuple[KernelPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, KernelPart))

    @property
    def tasks(self) -> tuple[WeightedTask, ...]:
        """The different tasks, equal ones counted together, in the order of their first use."""
        first: dict[str, Task] = {}
        weights: dict[str, int] = {}
        for part in self.kernels:
            first.setdefault(part.task.hash, part.task)
            weights[part.task.hash] = weights.get(part.task.hash, 0) + 1
        return tuple(WeightedTask(task, weights[key]) for key, task in first.items())
