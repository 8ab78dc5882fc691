"""What a network is cut into: groups of nodes that become one kernel, views that cost nothing, and fallbacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilewright.graph.graph import Graph
from tilewright.operators import Node
from tilewright.te import Task
from tilewright.tuning.task_scheduler.network import WeightedTask


@dataclass(frozen=True, slots=True, eq=False)
class KernelGroup:
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


Group: TypeAlias = KernelGroup | View | Fallback


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A network as groups, in an order in which they can run."""

    graph: Graph
    groups: tuple[Group, ...]

    @property
    def kernels(self) -> tuple[KernelGroup, ...]:
        return tuple(group for group in self.groups if isinstance(group, KernelGroup))

    @property
    def tasks(self) -> tuple[WeightedTask, ...]:
        """The different tasks, equal ones counted together, in the order of their first use."""
        first: dict[str, Task] = {}
        weights: dict[str, int] = {}
        for group in self.kernels:
            first.setdefault(group.task.hash, group.task)
            weights[group.task.hash] = weights.get(group.task.hash, 0) + 1
        return tuple(WeightedTask(task, weights[key]) for key, task in first.items())
