"""`python -m benchmarks.fleet`: trials a second of a fleet, by its devices; its overhead; its memory over many trials.

The cluster is real and of this machine alone. Devices are simulated where there are many (`measure.fleet.simulated`):
they answer after the time that a trial takes, and run nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import arguments
from benchmarks.machine import describe_machine
from benchmarks.table import heading, markdown
from tilewright import workloads
from tilewright.measure import Batch, Measurer
from tilewright.measure.fleet import Address, DeviceSpec, Fleet, Node, running_nodes, start_node, stop_node
from tilewright.measure.fleet.cluster import LOOPBACK, free_port, new_folder
from tilewright.measure.fleet.simulated import TRIAL_S
from tilewright.measure.local import LocalMeasurer
from tilewright.schedule import Trace
from tilewright.search import find_strategy
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target, default_threads

METHOD = (
    f"A simulated device answers after {TRIAL_S[0] * 1e3:.0f} to {TRIAL_S[1] * 1e3:.0f} ms, in the mean "
    f"{sum(TRIAL_S) * 500:.0f} ms; the ideal is that each does nothing else. Programs of simulated devices come from "
    "simulated builders, whose object code of 20 kB travels; all that is between is real: the cluster, the "
    "actors, the link and the dispatcher, on this machine. The overhead is that of a real device against the measurer "
    "of this machine, on the same programs, built and timed, in turns."
)
NUM_DEVICES = (1, 4, 16, 64, 256, 1000)
LINEAR_TO, SHARE = 64, 0.9
MOST_OVERHEAD = 0.1
_WORKLOAD = "gmm:128x128x128"
_SECONDS = 10.0
_BATCH = 16


@dataclass(frozen=True, slots=True)
class Scale:
    """So many simulated devices."""

    num_devices: int
    per_second: float
    ideal_per_second: float

    @property
    def share(self) -> float:
        return self.per_second / self.ideal_per_second

    @property
    def is_passed(self) -> bool:
        return self.num_devices > LINEAR_TO or self.share >= SHARE


@dataclass(frozen=True, slots=True)
class Overhead:
    """One real device, and this machine without a fleet."""

    fleet_per_second: float
    local_per_second: float

    @property
    def share(self) -> float:
        return 1 - self.fleet_per_second / self.local_per_second

    @property
    def is_passed(self) -> bool:
        return self.share <= MOST_OVERHEAD


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes of the tuner with its link, and of the head's own process, after so many trials."""

    num_trials: int
    tuner_mb: float
    head_mb: float


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for and print it."""
    options = _parse(argv)
    scales = [scale(number, options.seconds) for number in options.devices]
    overheads = [overhead(options.rounds)] if options.rounds else []
    memories = memory(options.trials) if options.trials else []
    print(as_json(scales, overheads, memories) if options.format == "json" else as_table(scales, overheads, memories))
    are_passed = [*(found.is_passed for found in scales), *(found.is_passed for found in overheads)]
    return 0 if all(are_passed) else 1


def scale(num_devices: int, seconds: float) -> Scale:
    """Trials a second of a fleet of simulated devices."""
    print(f"{num_devices} simulated devices", file=sys.stderr, flush=True)
    with _cluster(simulated=num_devices) as address, Fleet(address, threads=1) as fleet:
        keep_busy(fleet, num_devices, 1.0)  # it is warm then
        return Scale(num_devices, keep_busy(fleet, num_devices, seconds), num_devices / statistics.mean(TRIAL_S))


def keep_busy(measurer: Measurer, num_devices: int, seconds: float) -> float:
    """Results a second while there are always enough programs under way; all of them are taken in the end."""
    batch = Batch(workloads.parse(_WORKLOAD), _programs(_BATCH, measurer.target))
    wanted = max(2 * _BATCH, 4 * num_devices)
    num_open = num_done = 0
    started_s = time.monotonic()
    while time.monotonic() - started_s < seconds:
        while num_open < wanted:
            num_open += len(measurer.submit(batch))
        measurer.next_result()
        num_open -= 1
        num_done += 1
    rate = num_done / (time.monotonic() - started_s)
    for _ in range(num_open):
        measurer.next_result()
    return rate


def overhead(rounds: int) -> Overhead:
    """The same batches on the fleet and on the measurer of this machine, in turns; the median of the rates."""
    print("one real device", file=sys.stderr, flush=True)
    rates: dict[str, list[float]] = {"fleet": [], "local": []}
    with (
        _cluster() as address,
        Fleet(address) as fleet,
        closing(LocalMeasurer(fleet.target, fleet.threads)) as local,
    ):
        batch = Batch(workloads.parse(_WORKLOAD), _programs(4 * _BATCH, fleet.target), best_latency_s=1e-4)
        for _ in range(rounds + 1):
            for name, measurer in (("fleet", fleet), ("local", local)):
                rates[name].append(_rate(measurer, batch))
    return Overhead(statistics.median(rates["fleet"][1:]), statistics.median(rates["local"][1:]))


def _rate(measurer: Measurer, batch: Batch) -> float:
    """In rounds as a tuner makes them."""
    started_s = time.monotonic()
    for start in range(0, len(batch.traces), _BATCH):
        part = Batch(batch.task, batch.traces[start : start + _BATCH], best_latency_s=batch.best_latency_s)
        for _ in measurer.submit(part):
            measurer.next_result()
    return len(batch.traces) / (time.monotonic() - started_s)


def memory(trials: int) -> list[Memory]:
    """Memory now and then while 256 simulated devices measure."""
    print(f"{trials} trials", file=sys.stderr, flush=True)
    found: list[Memory] = []
    with _cluster(simulated=256) as address, Fleet(address, threads=1) as fleet:
        batch = Batch(workloads.parse(_WORKLOAD), _programs(_BATCH, fleet.target))
        num_open = 0
        for done in range(1, trials + 1):
            while num_open < 1024:
                num_open += len(fleet.submit(batch))
            fleet.next_result()
            num_open -= 1
            if done % max(1, trials // 10) == 0:
                head = sum(_resident_mb(pid) for pid in _descendants(running_nodes()[0]["pid"], "gcs_server"))
                tuner = sum(_resident_mb(pid) for pid in (os.getpid(), *_descendants(os.getpid(), "fleet.link")))
                found.append(Memory(done, tuner, head))
                print(found[-1], file=sys.stderr, flush=True)
    return found


@contextmanager
def _cluster(simulated: int = 0) -> Iterator[str]:
    """A cluster of this machine alone, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        os.environ["TILEWRIGHT_FLEET"] = folder
        os.environ["RAY_AUTH_TOKEN_PATH"] = os.path.join(folder, "token")
        cores = tuple(sorted(os.sched_getaffinity(0)))
        spec = DeviceSpec("bench", str(Target.native()), cores, default_threads(), simulated=simulated)
        address = Address(LOOPBACK, free_port())
        start_node(Node(address, True, spec, new_folder(), dies_with=os.getpid()))
        try:
            yield str(address)
        finally:
            stop_node("bench")


def _programs(number: int, target: Target) -> tuple[Trace, ...]:
    """Programs of the workload, drawn at random."""
    task = workloads.parse(_WORKLOAD)
    sketches = derive(task, SpaceOptions(target, 1))
    strategy = find_strategy("random").begin(sketches, lambda population: np.zeros(len(population)), target, 0)
    return tuple(candidate.trace for candidate in strategy.ask(number))


def _descendants(pid: int, part: str) -> list[int]:
    """Processes below one whose command has the text."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            command = Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace")
            found += [child] * (part in command) + _descendants(child, part)
    return found


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def as_table(scales: Sequence[Scale], overheads: Sequence[Overhead], memories: Sequence[Memory]) -> str:
    """A table for each question."""
    verdict: Callable[[bool], str] = lambda is_passed: "pass" if is_passed else "FAIL"  # noqa: E731
    parts = [heading(describe_machine([]), METHOD)]
    if scales:
        rows = [
            [
                f"{s.num_devices}",
                f"{s.per_second:.1f}",
                f"{s.ideal_per_second:.0f}",
                f"{s.share:.2f}",
                verdict(s.is_passed),
            ]
            for s in scales
        ]
        parts += [markdown(("devices", "trials/s", "ideal", "share", ""), rows), ""]
    if overheads:
        rows = [
            [f"{o.fleet_per_second:.1f}", f"{o.local_per_second:.1f}", f"{100 * o.share:.1f} %", verdict(o.is_passed)]
            for o in overheads
        ]
        parts += [markdown(("fleet, trials/s", "local, trials/s", "overhead", ""), rows), ""]
    if memories:
        rows = [[f"{m.num_trials:,}", f"{m.tuner_mb:.0f} MB", f"{m.head_mb:.0f} MB"] for m in memories]
        parts += [markdown(("trials", "tuner and link", "head"), rows), ""]
    return "\n".join(
        [*parts, f"must be: share >= {SHARE:g} to {LINEAR_TO} devices; overhead <= {100 * MOST_OVERHEAD:g} %"]
    )


def as_json(scales: Sequence[Scale], overheads: Sequence[Overhead], memories: Sequence[Memory]) -> str:
    """The same as one JSON object."""
    content = {
        "machine": describe_machine([]),
        "method": METHOD,
        "scales": [asdict(s) | {"share": s.share, "status": "pass" if s.is_passed else "fail"} for s in scales],
        "overheads": [asdict(o) | {"share": o.share, "status": "pass" if o.is_passed else "fail"} for o in overheads],
        "memories": [asdict(m) for m in memories],
    }
    return json.dumps(content, indent=2)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="for each number of devices")
    parser.add_argument("--rounds", type=int, default=5, help="of the overhead; 0 leaves it out")
    parser.add_argument("--trials", type=int, default=100_000, help="of the memory; 0 leaves it out")
    parser.add_argument(
        "--devices", type=_numbers, default=NUM_DEVICES, metavar="N,...", help="empty: none; default: 1 to 1000"
    )
    return parser.parse_args(argv)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(arguments.positive(part) for part in text.split(",") if part)


if __name__ == "__main__":
    sys.exit(main())
