"""What is tuned together: networks as weighted tasks, and which tasks are alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tilewright.errors import UsageError
from tilewright.measure import Context, activation_bytes, constant_bytes
from tilewright.te import Binary, Expr, Reduce, Select, Task, Tensor, Unary, children, collect_reads


@dataclass(frozen=True, slots=True, eq=False)
class WeightedTask:
    """A task and how many kernels of the network it stands for."""

    task: Task
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network as the scheduler sees it: its latency is the weighted sum of those of its tasks.

    `required_latency_s` is what the objective f2 asks for, `reference_latency_s` what f3 compares with. Its tasks are
    measured in the `context`; without one as the network runs them, whose arrays are cold.
    """

    name: str
    tasks: tuple[WeightedTask, ...]
    required_latency_s: float | None = None
    reference_latency_s: float | None = None
    context: Context | None = None

    def __post_init__(self) -> None:
        for what in ("required_latency_s", "reference_latency_s"):
            value = getattr(self, what)
            if value is not None and not value > 0:
                raise UsageError(f"{what} of the network {self.name} is {value}; it must be above 0 seconds")


def context_of(network: Network) -> Context:
    """In which its tasks are measured."""
    return deployed_context(network.tasks) if network.context is None else network.context


def deployed_context(tasks: Sequence[WeightedTask]) -> Context:
    """That of the kernels of a network of these tasks: each finds its arrays as the others left the caches.

    Activations share the memory of about two kernels: of the one that runs, and of what is kept for later ones.
    """
    weights = sum(weighted.weight * constant_bytes([weighted.task]) for weighted in tasks)
    activations = max((activation_bytes(weighted.task) for weighted in tasks), default=0)
    return Context.of_network(weights, 2 * activations)


def check_names(networks: Sequence[Network]) -> None:
    """Names tell networks apart, in progress, results and records."""
    if not networks:
        raise UsageError("a task scheduler needs at least one network")
    names = [network.name for network in networks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two networks are called {twice!r}; give each a name of its own")


def kind_of(task: Task) -> Hashable:
    """Equal for tasks whose heaviest stages are the same computation on other sizes.

    A convolution is of one kind with others of as many dimensions, whatever is fused to it.
    """
    heaviest = max(task.stages, key=_num_points)
    body = heaviest.body
    assert body is not None
    is_long = [axis.extent > 1 for axis in body.axes] if isinstance(body, Reduce) else []
    return (len(heaviest.shape), tuple(is_long), heaviest.dtype, len(collect_reads(body)), _operations(body))


def _num_points(stage: Tensor) -> int:
    total = 1
    for extent in stage.shape:
        total *= extent
    if isinstance(stage.body, Reduce):
        for axis in stage.body.axes:
            total *= axis.extent
    return total


def _operations(body: Expr) -> tuple[str, ...]:
    """The operators of an expression from the outside in; those of indices are left out."""
    found: list[str] = []

    def go(e: Expr) -> None:
        if isinstance(e, Unary | Binary | Reduce):
            found.append(e.op)
        elif isinstance(e, Select):
            found.append("select")
        for child in children(e):
            if collect_reads(child):
                go(child)

    go(body)
    return tuple(found)
