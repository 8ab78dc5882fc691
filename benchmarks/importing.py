"""`python -m benchmarks.importing`: how long large models take to import, and that it grows as they do.

Makes models of many nodes, one for each way in which a graph can be large, and times the three steps that come before
any kernel is compiled. Exits with 1 if a model takes too long, or more than in proportion to a smaller one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks import arguments
from benchmarks.machine import describe_machine
from benchmarks.table import heading, markdown
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import optimize
from tilewright.partition import partition
from tilewright.testing.large_models import KINDS

METHOD = (
    "Each model is made as a file in memory and imported once, in this process: read with its types inferred (load), "
    "rewritten by all passes (optimize), and cut into kernels (partition). Seconds are of the processor, so that other "
    "programs do not count. The ratio is the total by that of a model with a tenth of the nodes."
)
NUM_NODES = 100_000
LIMIT_S = 10.0
RATIO_LIMIT = 15.0
# No two of its kernels are the same: each has an expression of its own.
WITHOUT_LIMIT = frozenset(("numbers",))


@dataclass(frozen=True, slots=True)
class Import:
    """One model, imported."""

    num_nodes: int
    num_kernels: int
    num_tasks: int
    load_s: float
    optimize_s: float
    partition_s: float

    @property
    def total_s(self) -> float:
        return self.load_s + self.optimize_s + self.partition_s


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of graph: large, and with a tenth of its nodes."""

    kind: str
    small: Import
    large: Import

    @property
    def ratio(self) -> float:
        return self.large.total_s / self.small.total_s

    @property
    def is_fast(self) -> bool:
        return self.kind in WITHOUT_LIMIT or self.large.total_s <= LIMIT_S

    @property
    def is_linear(self) -> bool:
        return self.ratio <= RATIO_LIMIT


def main(argv: Sequence[str] | None = None) -> int:
    """Import the chosen kinds and print how long they took."""
    options = _parse(argv)
    chosen = [kind for kind in KINDS if options.case in kind]
    if not chosen:
        print(f"no kind of graph matches; they are {', '.join(KINDS)}", file=sys.stderr)
        return 2
    import_once(chosen[0], 10)  # what the process does once is not of the model
    cases = [run(kind, options.nodes) for kind in chosen]
    print(as_json(cases) if options.format == "json" else as_table(cases))
    return 0 if all(case.is_fast and case.is_linear for case in cases) else 1


def run(kind: str, num_nodes: int) -> Case:
    """Import a model of this kind and a smaller one."""
    print(f"{kind}: {num_nodes:,} nodes", file=sys.stderr, flush=True)
    small = import_once(kind, max(1, num_nodes // 10))
    return Case(kind, small, import_once(kind, num_nodes))


def import_once(kind: str, num_nodes: int) -> Import:
    """Make a model and import it."""
    model = KINDS[kind](num_nodes)
    load_s, graph = _timed(load_model, model.SerializeToString())
    optimize_s, graph = _timed(optimize, graph)
    partition_s, found = _timed(partition, graph)
    return Import(len(model.graph.node), len(found.kernels), len(found.tasks), load_s, optimize_s, partition_s)


def _timed(step: Callable[[Any], Any], argument: object) -> tuple[float, Any]:
    start_s = time.process_time()
    result = step(argument)
    return time.process_time() - start_s, result


def as_table(cases: Sequence[Case]) -> str:
    """A line for each kind, and what all must reach."""
    header = ("graph", "nodes", "kernels", "different", "load", "optimize", "partition", "total", "ratio", "")
    limits = f"must be: total <= {LIMIT_S:g} s, but for {', '.join(WITHOUT_LIMIT)}; ratio <= {RATIO_LIMIT:g}"
    table = markdown(header, [_row(case) for case in cases])
    return "\n".join([heading(describe_machine([]), METHOD), table, "", limits])


def _row(case: Case) -> list[str]:
    found = case.large
    return [
        case.kind,
        f"{found.num_nodes:,}",
        f"{found.num_kernels:,}",
        f"{found.num_tasks:,}",
        *(f"{seconds:.2f} s" for seconds in (found.load_s, found.optimize_s, found.partition_s, found.total_s)),
        f"{case.ratio:.1f}",
        "pass" if case.is_fast and case.is_linear else "FAIL",
    ]


def as_json(cases: Sequence[Case]) -> str:
    """The same as one JSON object."""
    described = [
        {
            "status": "pass" if case.is_fast and case.is_linear else "fail",
            "total_s": case.large.total_s,
            "limit_s": None if case.kind in WITHOUT_LIMIT else LIMIT_S,
            "ratio": case.ratio,
            "ratio_limit": RATIO_LIMIT,
        }
        | asdict(case)
        for case in cases
    ]
    return json.dumps({"machine": describe_machine([]), "method": METHOD, "cases": described}, indent=2)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.importing", __doc__)
    parser.add_argument(
        "--nodes", type=arguments.positive, default=NUM_NODES, metavar="N", help=f"of a large model; {NUM_NODES:,}"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
