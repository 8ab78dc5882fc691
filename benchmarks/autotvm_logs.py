"""`python -m benchmarks.autotvm_logs --logs FOLDER`: f_global + f_local from one device to another, on AutoTVM's logs.

FOLDER is a dataset of imported logs (`tilewright dataset import`) with devices of the names in PAIRS. Of each workload
that both devices of a pair have, a global model learns the programs of the first device, and a local one a few records
of the second. Rated is the program of the second device that a model likes most, among those that were not among the
records.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks import arguments
from benchmarks.machine import describe_machine
from benchmarks.table import heading, markdown
from tilewright.cost_model import BoostedTrees, CostModel, Dataset, Group, ResidualModel, peak_score
from tilewright.errors import UsageError
from tilewright.records.dataset import Corpus

PAIRS = (("amd3700x", "i5-1035g1"), ("cortex-a72", "cortex-a7"))
RECORDS = (16, 64, 256)
FEATURES = "primitives-flat"
LOCAL = {"num_trees": 60, "max_depth": 4, "learning_rate": 0.2, "l2": 1.0, "min_weight": 1.0}
LEAST_LABEL = 0.3
CHOSEN_ON = 40
"""LOCAL and LEAST_LABEL are the best of five on so many of the largest workloads of each pair, which are not rated."""
LEAST_REST = 32
"""So many programs that ran are left to choose from, or a workload is left out."""
METHOD = (
    f"Options of the local trees were chosen among five on the {CHOSEN_ON} largest workloads of each pair; rated are "
    "others. "
    "top-1: the latency of the best program over that of the program that a model likes most, among the programs of a "
    "workload on the second device that are not among the records; the mean over workloads and seeds. Global: boosted "
    "trees with rank objective on the programs of the same workload on the first device. Local: trees on the records "
    "of the second device alone. Both: trees on what the global model gets wrong of these records. Random: a pick by "
    "chance."
)
MODELS = ("random", "global", "local", "global + local")


@dataclass(frozen=True, slots=True)
class Row:
    """What one model finds on one pair of devices after so many records."""

    pair: str
    model: str
    records: int
    top_1: float
    num_workloads: int
    """As many as have that many records and enough programs beside them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = _parse(argv)
    try:
        rows = list(run(Corpus.open(options.logs), options.seeds, options.skip, options.workloads, options.case))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    if not rows:
        print(
            "no pair of devices has a workload in common; import the logs of both under these names:", file=sys.stderr
        )
        print(", ".join(" and ".join(pair) for pair in PAIRS), file=sys.stderr)
        return 2
    machine = describe_machine(("xgboost-cpu",))
    if options.format == "json":
        cases = [{name: getattr(row, name) for name in Row.__slots__} for row in rows]
        print(json.dumps({"machine": machine, "method": METHOD, "cases": cases}, indent=1))
        return 0
    print("\n".join([heading(machine, METHOD), as_table(rows)]))
    return 0


def run(corpus: Corpus, seeds: int, skip: int, most_workloads: int, chosen: str = "") -> Iterator[Row]:
    """All pairs of devices that the corpus has; the `skip` largest workloads are left out."""
    known = {device.name for device in corpus.devices}
    for first, second in PAIRS:
        pair = f"{first} -> {second}"
        if not {first, second} <= known or chosen not in pair:
            continue
        sources, targets = _by_workload(corpus, first), _by_workload(corpus, second)
        common = sorted(sources.keys() & targets.keys(), key=lambda task: -targets[task].num_valid)[
            skip : skip + most_workloads
        ]
        for num in RECORDS:
            usable = [task for task in common if _num_left(targets[task], num) >= LEAST_REST]
            found = [_rate(sources[task], targets[task], num, seed) for task in usable for seed in range(seeds)]
            print(f"{pair}, {num} records: {len(usable)} workloads", file=sys.stderr)
            for number, model in enumerate(MODELS if found else ()):
                yield Row(pair, model, num, float(np.mean([each[number] for each in found])), len(usable))


def _num_left(dataset: Dataset, num: int) -> float:
    """Programs that ran beside so many records, which are drawn from all; failures are records, too."""
    return dataset.num_valid * (1 - num / max(1, len(dataset)))


def _by_workload(corpus: Corpus, device: str) -> dict[str, Dataset]:
    groups: dict[str, list[Group]] = {}
    for source in corpus.sources:
        if source.device.name == device:
            groups.setdefault(source.part.task, []).extend(corpus.groups(source))
    return {task: Dataset(tuple(own)) for task, own in groups.items()}


def _rate(source: Dataset, target: Dataset, num: int, seed: int) -> list[float]:
    """The top-1 of each model."""
    is_record = np.zeros(len(target), np.bool_)
    is_record[np.random.default_rng(seed).permutation(len(target))[:num]] = True
    records, rest = _selected(target, is_record), _selected(target, ~is_record)
    latencies_s = np.concatenate([group.latencies_s for group in rest.groups])
    general = BoostedTrees(features=FEATURES, objective="rank", num_trees=100, seed=seed)
    general.fit(source)
    local = BoostedTrees(features=FEATURES, seed=seed)
    local.fit(records)
    both = ResidualModel.over(
        general, local_options={"features": FEATURES, **LOCAL}, least_label=LEAST_LABEL, seed=seed
    )
    both.fit(records)
    scores = [np.zeros(len(rest)), *(_scores(model, rest) for model in (general, local, both))]  # by chance: all alike
    return [peak_score(own, 1 / latencies_s, 1) for own in scores]


def _scores(model: CostModel, dataset: Dataset) -> NDArray[np.float64]:
    return np.concatenate([model.score(group.encoded(model.encoder)) for group in dataset.groups])


def _selected(dataset: Dataset, mask: NDArray[np.bool_]) -> Dataset:
    groups: list[Group] = []
    start = 0
    for group in dataset.groups:
        own = np.flatnonzero(mask[start : start + len(group)])
        start += len(group)
        if len(own):
            groups.append(group.select(own))
    return Dataset(tuple(groups))


def as_table(rows: Sequence[Row]) -> str:
    """A line for each pair and model, a column for each number of records."""
    cells = []
    for pair, model in dict.fromkeys((row.pair, row.model) for row in rows):
        by_records = {row.records: row for row in rows if (row.pair, row.model) == (pair, model)}
        found = [f"{by_records[num].top_1:.3f}" if num in by_records else "-" for num in RECORDS]
        workloads = ", ".join(str(row.num_workloads) for row in by_records.values())
        cells.append([pair, model, *found, workloads])
    return markdown(["devices", "model", *(f"{num} records" for num in RECORDS), "workloads"], cells)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.autotvm_logs", __doc__)
    parser.add_argument("--logs", nargs="+", required=True, metavar="FOLDER", help="datasets of imported logs")
    parser.add_argument("--seeds", type=arguments.positive, default=3, metavar="N")
    parser.add_argument(
        "--skip", type=int, default=CHOSEN_ON, metavar="N", help="the largest workloads, on which options were chosen"
    )
    parser.add_argument(
        "--workloads", type=arguments.positive, default=1000, metavar="N", help="of a pair, at most: the largest ones"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
