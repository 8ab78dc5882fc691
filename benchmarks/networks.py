"""`python -m benchmarks.networks`: whole networks with zero trials and tuned, next to onnxruntime and openvino.

Every finished network is written to a JSON file at once, and its trials are kept as records: a run that is started
again with the same --records spends only what is left of the --budget, and times the networks again. Exits with 1 if
they fall short.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import arguments, suite
from benchmarks.contest import WrongResultError
from benchmarks.machine import describe_machine
from benchmarks.suite import Suite, geometric_mean, milliseconds
from benchmarks.table import heading, markdown
from benchmarks.timing import METHOD as TURNS
from benchmarks.tuned_network import Point, close_after_s, compare_finalists, tune_network
from tilewright.cli.comparison import check_agreement
from tilewright.errors import TilewrightError
from tilewright.network import (
    InferenceSession,
    compile_partition,
    name_of,
    partition_network,
    read_network,
)
from tilewright.partition import Partition
from tilewright.peers import NetworkPeer, network_peer, settle_s, take_turns
from tilewright.runtime import Timing
from tilewright.target import Target
from tilewright.zoo import inputs_for

NETWORKS = (
    "zoo:resnet18",
    "zoo:resnet50",
    "zoo:mobilenet_v2",
    "zoo:bert_tiny",
    "zoo:bert_base",
    "zoo:resnet3d_18",
    "zoo:dcgan",
    "zoo:vgg16",
    "zoo:inception_v3",
)
LIBRARIES = ("onnxruntime", "openvino")
REQUIRED_TUNED_MEAN = 1.35
REQUIRED_TUNED_LEAST = 1.0
REQUIRED_UNTUNED_MEAN = 1.15
REQUIRED_UNTUNED_LEAST = 0.85
BUDGET_LIMIT_S = 600
CLOSE_NETWORK = "zoo:resnet18"
CLOSE_LIMIT_S = 180
METHOD = (
    f"{TURNS} Both programs of a network and both libraries take turns in one run, after their outputs were compared. "
    "`within 10 %` is when the latency that the tuner expects of the network, every task measured, was no longer more "
    "than 10 % above the one at its end; it counts from before the network is read."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One network. A ratio is the faster library's time by ours; it is 0 where `failure` says why there is none."""

    network: str
    threads: int
    budget_s: float
    num_tasks: int = 0
    num_trials: int = 0
    tuning_s: float = 0.0
    close_after_s: float | None = None
    estimated_ms: float | None = None
    untuned_ms: float | None = None
    tuned_ms: float | None = None
    peers_ms: dict[str, float] = field(default_factory=dict)
    peer: str = ""
    untuned_ratio: float = 0.0
    tuned_ratio: float = 0.0
    failure: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Tune and measure the chosen networks, and print all that the file holds of them."""
    parser = arguments.parser("benchmarks.networks", __doc__)
    parser.add_argument("--budget", type=arguments.positive, default=BUDGET_LIMIT_S, metavar="SECONDS")
    parser.add_argument("--zero-trials", action="store_true", help="tune nothing")
    options = suite.parse(parser, argv, "networks")
    kept = Suite("network", Row, run, _verdict, as_table, as_json, passed)
    return kept.main([network for network in NETWORKS if options.case in network], options)


def run(network: str, options: argparse.Namespace) -> Row:
    """Tune one network, check what it computes with zero trials and tuned, and time all in turns."""
    target = Target.native()
    if options.zero_trials:
        return run_untuned(network, target, options)
    row = Row(network, options.threads, options.budget)
    records = options.records / f"{name_of(network)}.jsonl"
    num_bytes_before = _num_bytes(records)
    try:
        partition, points = tune_network(
            name_of(network), partial(partition_network, network), records,
            budget_s=options.budget, target=target, threads=options.threads, seed=options.seed,
        )  # fmt: skip
        row = _with_tuning(row, len(partition.tasks), points)
        if _num_bytes(records) != num_bytes_before:
            compare_finalists(network, partition, records, target, options.threads)
        return _with_timings(row, measure(network, partition, records, target, options.threads, options.rounds))
    except (TilewrightError, WrongResultError) as error:
        return replace(row, failure=str(error).splitlines()[0])


def run_untuned(network: str, target: Target, options: argparse.Namespace) -> Row:
    """Check what it computes with zero trials, and time it in turns with the libraries."""
    row = Row(network, options.threads, 0.0)
    try:
        partition = partition_network(network)
        row = replace(row, num_tasks=len(partition.tasks))
        return _with_timings(row, measure(network, partition, None, target, options.threads, options.rounds))
    except (TilewrightError, WrongResultError) as error:
        return replace(row, failure=str(error).splitlines()[0])


def _num_bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def measure(
    network: str, partition: Partition, records: Path | None, target: Target, threads: int, rounds: int
) -> dict[str, Timing]:
    """The time of each of us and of the libraries, on the same inputs."""
    model = read_network(network)
    sources = {"untuned": None} if records is None else {"untuned": None, "tuned": str(records)}
    sessions = {
        name: InferenceSession(compile_partition(partition, source, target, threads).model)
        for name, source in sources.items()
    }
    inputs = inputs_for(sessions["untuned"].model.input_types, model)
    peers = {library: network_peer(library, model, threads) for library in LIBRARIES}
    for name, session in sessions.items():
        check_outputs(name, session, peers, inputs)
    calls = {name: partial(session.run, None, inputs) for name, session in sessions.items()}
    calls |= {name: partial(peer.run, inputs) for name, peer in peers.items()}
    return take_turns(calls, rounds, settle_s(list(peers), threads))


def check_outputs(
    name: str, session: InferenceSession, peers: Mapping[str, NetworkPeer], inputs: Mapping[str, Any]
) -> None:
    """An error where a library computes something else."""
    outputs = [output.name for output in session.get_outputs()]
    ours = session.run(None, inputs)
    for library, peer in peers.items():
        for output, our_array, their_array in zip(outputs, ours, peer.run(inputs), strict=True):
            try:
                check_agreement(library, output, our_array, their_array)
            except TilewrightError as error:
                raise WrongResultError(f"{name}: {error}") from error


def _with_tuning(row: Row, num_tasks: int, points: Sequence[Point]) -> Row:
    last = points[-1]
    return replace(
        row,
        budget_s=max(point.budget_s for point in points),
        num_tasks=num_tasks,
        num_trials=last.num_trials,
        tuning_s=last.elapsed_s,
        close_after_s=close_after_s(points),
        estimated_ms=last.latency_s * 1e3,
    )


def _with_timings(row: Row, timings: Mapping[str, Timing]) -> Row:
    fastest = min(LIBRARIES, key=lambda library: timings[library].median_s)
    row = replace(
        row,
        untuned_ms=timings["untuned"].median_s * 1e3,
        peers_ms={library: timings[library].median_s * 1e3 for library in LIBRARIES},
        peer=fastest,
        untuned_ratio=ratio(timings[fastest], timings["untuned"]),
    )
    if "tuned" not in timings:
        return row
    tuned = timings["tuned"]
    return replace(row, tuned_ms=tuned.median_s * 1e3, tuned_ratio=ratio(timings[fastest], tuned))


def ratio(theirs: Timing, ours: Timing) -> float:
    """The median over the rounds."""
    return median(their_s / our_s for their_s, our_s in zip(theirs.samples_s, ours.samples_s, strict=True))


def means(rows: Sequence[Row]) -> tuple[float, float]:
    """The geometric means of the ratios, tuned and with zero trials, of the networks that have them."""
    whole = [row for row in rows if not row.failure]
    tuned = [row.tuned_ratio for row in whole if row.budget_s > 0]
    return geometric_mean(tuned), geometric_mean([row.untuned_ratio for row in whole])


def passed(rows: Sequence[Row]) -> bool:
    """Whether the networks reach what they must, none tuned for longer than it may be."""
    tuned_mean, untuned_mean = means(rows)
    tuned = _tuned_rows(rows)
    return (
        (tuned_mean >= REQUIRED_TUNED_MEAN or not tuned)
        and untuned_mean >= REQUIRED_UNTUNED_MEAN
        and all(row.untuned_ratio >= REQUIRED_UNTUNED_LEAST for row in rows)
        and not any(row.failure for row in rows)
        and all(row.tuned_ratio >= REQUIRED_TUNED_LEAST and row.budget_s <= BUDGET_LIMIT_S for row in tuned)
        and all(row.close_after_s is not None and row.close_after_s <= CLOSE_LIMIT_S for row in _close_rows(rows))
    )


def _tuned_rows(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.budget_s > 0]


def _close_rows(rows: Sequence[Row]) -> list[Row]:
    return [row for row in _tuned_rows(rows) if row.network == CLOSE_NETWORK]


def as_table(rows: Sequence[Row]) -> str:
    """One line a network, and below them what they must reach."""
    header = (
        "network", "threads", "tasks", "trials", "tuning", "within 10 %", "zero trials", "tuned", *LIBRARIES,
        "ratio with zero trials", "ratio tuned", "",
    )  # fmt: skip
    table = markdown(header, [_cells(row) for row in rows])
    return "\n".join([heading(describe_machine(LIBRARIES), METHOD), table, "", *_summary(rows)])


def _cells(row: Row) -> list[str]:
    return [
        row.network, str(row.threads), str(row.num_tasks), str(row.num_trials), f"{row.tuning_s:.0f} s",
        _seconds(row.close_after_s), milliseconds(row.untuned_ms), milliseconds(row.tuned_ms),
        *(milliseconds(row.peers_ms.get(library)) for library in LIBRARIES),
        f"{row.untuned_ratio:.2f}", f"{row.tuned_ratio:.2f}" if row.budget_s else "", row.failure,
    ]  # fmt: skip


def _summary(rows: Sequence[Row]) -> list[str]:
    tuned_mean, untuned_mean = means(rows)
    tuned = _tuned_rows(rows)
    least = min((row.untuned_ratio for row in rows), default=0.0)
    of_mean = f"geometric mean {untuned_mean:.2f} (must reach {REQUIRED_UNTUNED_MEAN:.2f})"
    lines = [f"with zero trials: {of_mean}, lowest {least:.2f} (must reach {REQUIRED_UNTUNED_LEAST:.2f})"]
    if tuned:
        least = min(row.tuned_ratio for row in tuned)
        of_tuned = f"geometric mean {tuned_mean:.2f} (must reach {REQUIRED_TUNED_MEAN:.2f})"
        of_least = f"lowest {least:.2f} (must reach {REQUIRED_TUNED_LEAST:.2f})"
        lines.insert(0, f"tuned, {len(tuned)} networks: {of_tuned}, {of_least}")
    for row in _close_rows(rows):
        after = _seconds(row.close_after_s) or "not known"
        lines.append(f"seconds until {row.network} is within 10 %: {after} (at most {CLOSE_LIMIT_S} s)")
    for row in rows:
        if row.budget_s > BUDGET_LIMIT_S:
            lines.append(f"{row.network} had {row.budget_s:g} s of tuning (at most {BUDGET_LIMIT_S} s)")
    return [*lines, "pass" if passed(rows) else "FAIL"]


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object; `Suite.read` takes it back."""
    tuned_mean, untuned_mean = means(rows)
    return json.dumps(
        {
            "machine": describe_machine(LIBRARIES),
            "method": METHOD,
            "status": "pass" if passed(rows) else "fail",
            "tuned_geometric_mean": tuned_mean,
            "untuned_geometric_mean": untuned_mean,
            "cases": [asdict(row) for row in rows],
        },
        indent=2,
    )


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} s"


def _verdict(row: Row) -> str:
    if row.failure:
        return f"failed: {row.failure}"
    ours, ratios = f"zero trials {milliseconds(row.untuned_ms)}", f"ratio {row.untuned_ratio:.2f}"
    if row.tuned_ms is not None:
        ours, ratios = f"{ours}, tuned {milliseconds(row.tuned_ms)}", f"{ratios}, tuned {row.tuned_ratio:.2f}"
    return f"{ours}, {row.peer} {milliseconds(row.peers_ms[row.peer])}: {ratios}"


if __name__ == "__main__":
    sys.exit(main())
