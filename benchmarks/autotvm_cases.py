"""What `benchmarks.autotvm` runs: the workloads, the ways to search them, and which of these a table compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.search import STRATEGIES, SearchStrategy
from tilewright.space import Template
from tilewright.space.templates import x86

TEMPLATE, DERIVED, BOTH = "template", "derived", "both"


@dataclass(frozen=True, slots=True)
class Case:
    """A workload by a short name, and the template of its operator."""

    name: str
    workload: str
    template: Template


def _convolution(number: int, size: int, channels: int, features: int, kernel: int, stride: int) -> Case:
    padding = kernel // 2
    workload = f"c2d:1x{size}x{size}x{channels},{features},{kernel}x{kernel},s{stride},p{padding}"
    return Case(f"C{number}", workload, x86.conv2d)


CONVOLUTIONS = (
    _convolution(1, 224, 3, 64, 7, 2),
    _convolution(2, 56, 64, 64, 3, 1),
    _convolution(3, 56, 64, 64, 1, 1),
    _convolution(4, 56, 64, 128, 3, 2),
    _convolution(5, 56, 64, 128, 1, 2),
    _convolution(6, 28, 128, 128, 3, 1),
    _convolution(7, 28, 128, 256, 3, 2),
    _convolution(8, 28, 128, 256, 1, 2),
    _convolution(9, 14, 256, 256, 3, 1),
    _convolution(10, 14, 256, 512, 3, 2),
    _convolution(11, 14, 256, 512, 1, 2),
    _convolution(12, 7, 512, 512, 3, 1),
)
"""Those of ResNet-18 at 224x224, batch 1, that differ: C1 to C12 of the paper on AutoTVM."""
GEMM = Case("GEMM", "gmm:1024x1024x1024", x86.matmul)
CASES = (*CONVOLUTIONS, GEMM)
HISTORY = CONVOLUTIONS[:6]


@dataclass(frozen=True, slots=True)
class Method:
    """A way to tune. `name` is what a table calls it; the same way may have other names in other tables."""

    name: str
    search: str = "annealing"
    options: Mapping[str, float] = field(default_factory=dict)
    cost_model: str = "boosted-trees"
    space: str = TEMPLATE
    knows_history: bool = False
    """Whether it begins with what the first method of the table has measured of HISTORY."""

    @property
    def key(self) -> str:
        """What tells its records from those of others.

        >>> Method("diverse", options={"alpha": 0.2}).key
        'annealing-alpha_0.2-boosted-trees-template'
        """
        options = [f"{name}_{value:g}" for name, value in self.options.items()]
        model = [self.cost_model] if self.strategy.uses_scores else []
        return "-".join([self.search, *options, *model, self.space, *(["history"] if self.knows_history else [])])

    @property
    def strategy(self) -> SearchStrategy:
        """A new one."""
        return STRATEGIES[self.search](**self.options)


@dataclass(frozen=True, slots=True)
class Table:
    """Methods that are compared. The first is the reference: how soon the others find a program as fast as its best."""

    name: str
    title: str
    methods: tuple[Method, ...]
    cases: tuple[Case, ...] = CASES
    reference_trials: int | None = None
    """Of the reference, where it is to have more than the others."""

    @property
    def reference(self) -> Method:
        return self.methods[0]


RANDOM = Method("random", "random")
TREES = Method("annealing + trees")
TABLES = {
    table.name: table
    for table in (
        Table(
            "search",
            "Search strategies on the space of a template",
            (
                RANDOM,
                TREES,
                Method("annealing + TreeGRU", cost_model="tree-gru"),
                Method("evolutionary + trees", "evolutionary"),
                Method("genetic", "genetic"),
                Method("grid", "grid"),
                Method("TPE", "tpe"),
                Method("coordinate descent", "coordinate-descent"),
            ),
        ),
        Table(
            "learning",
            "What annealing with boosted trees learns from, one thing changed at a time",
            (
                RANDOM,
                Method("regression, statements, alpha 0, epsilon 0.05"),
                Method("rank", cost_model="boosted-trees:objective=rank"),
                Method("alpha 0.2", options={"alpha": 0.2}),
                Method("epsilon 0", options={"epsilon": 0.0}),
                Method("epsilon 0.2", options={"epsilon": 0.2}),
                Method("features: knobs", cost_model="boosted-trees:features=knobs"),
                Method("features: loop context", cost_model="boosted-trees:features=loop-context"),
                Method("features: curves", cost_model="boosted-trees:features=curves"),
            ),
        ),
        Table(
            "transfer",
            "C1 to C6 as history, on the space of a template",
            (
                Method("no history"),
                Method("history, statements", knows_history=True),
                Method("history, curves", cost_model="boosted-trees:features=curves", knows_history=True),
            ),
            (*CONVOLUTIONS[6:], GEMM),
            reference_trials=200,
        ),
        Table(
            "templates",
            "Templates and derived sketches, as the tuner is by default",
            (
                Method("derived", "evolutionary", cost_model="default", space=DERIVED),
                Method("template", "evolutionary", cost_model="default"),
                Method("both", "evolutionary", cost_model="default", space=BOTH),
            ),
        ),
    )
}
