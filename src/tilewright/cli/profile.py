"""The time of a network by its kernels, for `run --profile` and `inspect --profile`."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tilewright.cli.comparison import aligned
from tilewright.cli.inspect_compiled import by_algorithms
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.deploy.compiled import CompiledModel
    from tilewright.network import InferenceSession

# The first run touches memory for the first time, and is not counted.
_NUM_RUNS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--profile`, and how it is printed."""
    parser.add_argument("--profile", action="store_true", help="of a model: the time by kernel")
    parser.add_argument("--format", choices=("table", "json"), help="how --profile is printed (default: table)")


def check_arguments(arguments: argparse.Namespace) -> None:
    """The format is that of the profile."""
    if arguments.format and not arguments.profile:
        raise UsageError(f"--format {arguments.format} is for the times by kernel; add --profile")


@dataclass(frozen=True, slots=True)
class Row:
    """All calls of one kernel, or all runs of nodes of one operator that has none, in one run of the network."""

    name: str
    calls: int
    ms: float
    share: float
    gflops: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def measure(session: InferenceSession, feed: Mapping[str, Any]) -> list[Row]:
    """The rows of a network on these inputs, the slowest first: of each call the median of several runs."""
    runs = [[step.seconds for step in session.profile(feed)] for _ in range(1 + _NUM_RUNS)][1:]
    seconds = [statistics.median(times) for times in zip(*runs, strict=True)]
    total_s = sum(seconds)
    grouped: dict[_Part, list[float]] = {}
    for part, time_s in zip(_parts(session.model), seconds, strict=True):
        grouped.setdefault(part, []).append(time_s)
    rows = [part.row(times, total_s) for part, times in grouped.items()]
    return sorted(rows, key=lambda row: -row.ms)


@dataclass(frozen=True, slots=True)
class _Part:
    """A kernel, or an operator that has none; `kernel` tells those of the same name apart."""

    name: str
    kernel: int | None = None
    flop: float | None = None

    def row(self, times_s: list[float], total_s: float) -> Row:
        spent_s = sum(times_s)
        has_speed = self.flop is not None and spent_s > 0
        speed = len(times_s) * self.flop / spent_s / 1e9 if has_speed and self.flop else None
        return Row(self.name, len(times_s), spent_s * 1e3, spent_s / total_s if total_s else 0.0, speed)


def _parts(model: CompiledModel) -> Iterator[_Part]:
    """What is timed, in the order in which it is."""
    from tilewright.deploy.compiled import FallbackStep

    for step in model.steps:
        if isinstance(step, FallbackStep):
            yield _Part(f"{step.node.op} (no kernel)")
            continue
        for call in step.calls:
            kernel = model.kernels[call.kernel]
            yield _Part(f"{call.kernel} {kernel.name}{by_algorithms(kernel)}", call.kernel, kernel.flop)


def table(rows: list[Row]) -> str:
    """One line a kernel, and one for all of them."""
    total = Row("all", sum(row.calls for row in rows), sum(row.ms for row in rows), 1.0)
    lines = [["kernel", "calls", "time", "share", "GFLOP/s"]]
    for row in (*rows, total):
        speed = "" if row.gflops is None else f"{row.gflops:.1f}"
        lines.append([row.name, str(row.calls), f"{row.ms:.4f} ms", f"{row.share:.1%}", speed])
    return aligned(lines)


def to_json(session: InferenceSession, workload: str, threads: int, rows: list[Row], **more: Any) -> str:
    """The rows with what they are of."""
    head = {"network": workload, "target": session.model.target, "threads": threads, **more}
    return json.dumps(head | {"rows": [row.to_json() for row in rows]}, indent=2)
