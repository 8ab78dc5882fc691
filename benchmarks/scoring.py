"""`python -m benchmarks.scoring`: candidates scored in a second on one core, features included.

By default the model is the one that ships, with the local one that adapts it to a task. That has learned from as many
programs as a tuning run has measured in the end; what it learned does not change how long it takes. Populations of
every sketch are scored in turns. Exits with 1 if a case falls short.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from benchmarks import arguments
from benchmarks.machine import describe_machine
from benchmarks.table import heading, markdown
from tilewright import workloads
from tilewright.cost_model import DEFAULT, BoostedTrees, find
from tilewright.search import RandomSearch
from tilewright.space import Population, Sketch, SpaceOptions, derive
from tilewright.target import Target
from tilewright.tuning.scoring import Scoring

METHOD = (
    "One core. Each round scores a population of each sketch: from rows of integers to scores. The rate is that of the "
    "median round; the parts are timed by themselves."
)
WORKLOADS = ("gmm:512x512x512", "c2d:1x14x14x256,256,3x3,s1,p1", "c2d:1x28x28x128,128,3x3,s1,p1+relu")
REQUIRED = 10_000.0
REQUIRED_OF_TREES = 20_000.0
THREADS = 2

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Row:
    """Candidates a second: all of it, and its parts."""

    workload: str
    num_sketches: int
    population: int
    num_learned: int
    per_second: float
    features_per_second: float
    model_per_second: float
    required: float = REQUIRED

    @property
    def passed(self) -> bool:
        return self.per_second >= self.required


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen workloads and print them."""
    options = _parse(argv)
    chosen = [workload for workload in WORKLOADS if options.case in workload]
    if not chosen:
        print(f"no case matches; they are {', '.join(WORKLOADS)}", file=sys.stderr)
        return 2
    with one_core():
        rows = [run(workload, options) for workload in chosen]
    print(as_json(rows) if options.format == "json" else as_table(rows))
    return 0 if all(row.passed for row in rows) else 1


@contextmanager
def one_core() -> Iterator[None]:
    """Within it this process runs on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def run(workload: str, options: argparse.Namespace) -> Row:
    """Score populations of every sketch of the workload."""
    target = Target.native()
    sketches = derive(workloads.parse(workload), SpaceOptions(target, THREADS))
    model = find(options.cost_model)
    scoring = Scoring(model)
    teach(scoring, sketches, target, options.learned)
    rng = np.random.default_rng(0)
    populations = [sketch.sample(rng, options.population) for sketch in sketches]
    features = [model.encoder.encode(known) for known in populations]

    def score(position: int) -> object:
        return scoring.scores(populations[position])

    def compute_features(position: int) -> object:
        return model.encoder.encode(populations[position])

    def run_model(position: int) -> object:
        return model.score(features[position])

    parts = (score, compute_features, run_model)
    times_s: list[list[float]] = [[] for _ in parts]
    for _ in range(options.rounds):
        for times, part in zip(times_s, parts, strict=True):
            start = time.perf_counter()
            for position in range(len(sketches)):
                part(position)
            times.append(time.perf_counter() - start)
    num = len(sketches) * options.population
    whole, first, second = (num / median(times) for times in times_s)
    required = REQUIRED_OF_TREES if isinstance(model, BoostedTrees) else REQUIRED
    return Row(workload, len(sketches), options.population, options.learned, whole, first, second, required)


def teach(scoring: Scoring, sketches: Sequence[Sketch], target: Target, num_programs: int) -> None:
    """Let the model learn random candidates with made-up latencies: the analytical model and some noise."""
    candidates = RandomSearch().begin(sketches, scoring.scores, target).ask(num_programs)
    rng = np.random.default_rng(0)
    latencies_s = [
        float(np.exp(-scoring.scores(Population.of([candidate]))[0]) * rng.uniform(0.8, 1.25))
        for candidate in candidates
    ]
    scoring.learn(candidates, latencies_s)


def as_table(rows: Sequence[Row]) -> str:
    """One line a workload."""
    header = ("workload", "sketches", "population", "candidates/s", "features alone", "model alone", "must reach", "")
    cells = [
        [
            row.workload, str(row.num_sketches), str(row.population), f"{row.per_second:,.0f}",
            f"{row.features_per_second:,.0f}", f"{row.model_per_second:,.0f}", f">= {row.required:,.0f}",
            "pass" if row.passed else "FAIL",
        ]
        for row in rows
    ]  # fmt: skip
    return "\n".join([heading(describe_machine(), METHOD), markdown(header, cells)])


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object."""
    cases = [{"status": "pass" if row.passed else "fail"} | asdict(row) for row in rows]
    return json.dumps({"machine": describe_machine(), "method": METHOD, "cases": cases}, indent=2)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.scoring", __doc__)
    parser.add_argument("--population", type=arguments.positive, default=2048, metavar="N")
    parser.add_argument("--cost-model", default=DEFAULT, metavar="M", help="a name or a file (default: %(default)s)")
    parser.add_argument("--learned", type=arguments.positive, default=128, metavar="N", help="programs to learn from")
    parser.add_argument("--rounds", type=arguments.positive, default=7, metavar="N")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
