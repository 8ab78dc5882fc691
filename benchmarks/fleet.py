"""`python -m benchmarks.fleet`: trials a second of a fleet, by its devices; its overhead; its memory over many trials;
two real devices tuned together; a foreign one; and what goes wrong.

The cluster is real and of this machine alone. Devices are simulated where there are many (`measure.fleet.simulated`):
they answer after the time that a trial takes, and run nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field

import numpy as np

from benchmarks import arguments
from benchmarks.fleet_cluster import cluster_of, descendants, here, processes_of, resident_mb
from benchmarks.fleet_faults import Fault, faults
from benchmarks.fleet_networks import MOST_SLOWER, Foreign, Together, foreign, together
from benchmarks.machine import describe_machine
from benchmarks.table import heading, markdown
from tilewright import workloads
from tilewright.measure import Batch, Measurer
from tilewright.measure.fleet import Fleet
from tilewright.measure.fleet.simulated import TRIAL_S
from tilewright.measure.local import LocalMeasurer
from tilewright.schedule import Trace
from tilewright.search import find_strategy
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target

METHOD = (
    f"A simulated device answers after {TRIAL_S[0] * 1e3:.0f} to {TRIAL_S[1] * 1e3:.0f} ms, in the mean "
    f"{sum(TRIAL_S) * 500:.0f} ms; the ideal is that each does nothing else. Programs of simulated devices come from "
    "simulated builders, whose object code of 20 kB travels; all that is between is real: the cluster, the "
    "actors, the link and the dispatcher, on this machine. The overhead is that of a real device against the measurer "
    "of this machine, on the same programs, built and timed, in turns. Two devices are tuned for in one run, then each "
    "alone with as many trials, and the artifacts run in turns. Each fault happens once in a run, at a random moment."
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


@dataclass(slots=True)
class Found:
    """What was measured, by the question."""

    scales: list[Scale] = field(default_factory=list)
    overheads: list[Overhead] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    togethers: list[Together] = field(default_factory=list)
    foreigns: list[Foreign] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def are_passed(self) -> bool:
        kinds = (self.scales, self.overheads, self.togethers, self.foreigns, self.faults)
        return all(found.is_passed for kind in kinds for found in kind)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for and print it."""
    options = _parse(argv)
    found = Found(
        scales=[scale(number, options.seconds) for number in options.devices],
        overheads=[overhead(options.rounds)] if options.rounds else [],
        memories=memory(options.trials) if options.trials else [],
        togethers=together(options.together) if options.together else [],
        foreigns=[foreign(options.foreign)] if options.foreign else [],
        faults=faults(options.faults, options.fault, options.results, options.budget) if options.faults else [],
    )
    print(as_json(found) if options.format == "json" else as_table(found))
    return 0 if found.are_passed else 1


def scale(num_devices: int, seconds: float) -> Scale:
    """Trials a second of a fleet of simulated devices."""
    print(f"{num_devices} simulated devices", file=sys.stderr, flush=True)
    with cluster_of([here(num_devices)]) as cluster, Fleet(str(cluster.address), threads=1) as fleet:
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
    """The same batches on the fleet and on the measurer of this machine, in turns; the median of the rates.

    Each round has programs of its own: the measurer of this machine does not build again what it has built lately.
    """
    print("one real device", file=sys.stderr, flush=True)
    rates: dict[str, list[float]] = {"fleet": [], "local": []}
    with (
        cluster_of([here()]) as cluster,
        Fleet(str(cluster.address)) as fleet,
        closing(LocalMeasurer(fleet.target, fleet.threads)) as local,
    ):
        task = workloads.parse(_WORKLOAD)
        num_programs = 4 * _BATCH
        programs = _programs((rounds + 1) * num_programs, fleet.target)
        for start in range(0, len(programs), num_programs):
            batch = Batch(task, programs[start : start + num_programs], best_latency_s=1e-4)
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
    with cluster_of([here(256)]) as cluster, Fleet(str(cluster.address), threads=1) as fleet:
        batch = Batch(workloads.parse(_WORKLOAD), _programs(_BATCH, fleet.target))
        num_open = 0
        for done in range(1, trials + 1):
            while num_open < 1024:
                num_open += len(fleet.submit(batch))
            fleet.next_result()
            num_open -= 1
            if done % max(1, trials // 10) == 0:
                head = sum(map(resident_mb, processes_of("bench", "gcs_server")))
                tuner = sum(map(resident_mb, (os.getpid(), *descendants(os.getpid(), "fleet.link"))))
                found.append(Memory(done, tuner, head))
                print(found[-1], file=sys.stderr, flush=True)
    return found


def _programs(number: int, target: Target) -> tuple[Trace, ...]:
    """Programs of the workload, drawn at random."""
    task = workloads.parse(_WORKLOAD)
    sketches = derive(task, SpaceOptions(target, 1))
    strategy = find_strategy("random").begin(sketches, lambda population: np.zeros(len(population)), target, 0)
    return tuple(candidate.trace for candidate in strategy.ask(number))


def as_table(found: Found) -> str:
    """A table for each question."""
    tables = [
        (("devices", "trials/s", "ideal", "share", ""), list(map(_scale_row, found.scales))),
        (("fleet, trials/s", "local, trials/s", "overhead", ""), list(map(_overhead_row, found.overheads))),
        (("trials", "tuner and link", "head"), list(map(_memory_row, found.memories))),
        (
            ("device", "trials", "untuned, ms", "both in one run, ms", "alone, ms", "slower", ""),
            list(map(_together_row, found.togethers)),
        ),
        (("foreign", "trials", "tasks with a program", "largest error", ""), list(map(_foreign_row, found.foreigns))),
        (
            ("fault", "times", "hit", "programs", "lost", "twice", "failed", "ended", "longest, s", ""),
            list(map(_fault_row, found.faults)),
        ),
    ]
    parts = [heading(describe_machine([]), METHOD)]
    for header, rows in tables:
        parts += [markdown(header, rows), ""] if rows else []
    limits = (
        f"must be: share >= {SHARE:g} to {LINEAR_TO} devices; overhead <= {100 * MOST_OVERHEAD:g} %; slower by at most "
        f"{100 * MOST_SLOWER:g} %; nothing lost, twice or failed, all ended"
    )
    return "\n".join([*parts, limits])


def _scale_row(s: Scale) -> list[str]:
    numbers = [f"{s.num_devices}", f"{s.per_second:.1f}", f"{s.ideal_per_second:.0f}", f"{s.share:.2f}"]
    return [*numbers, _verdict(s.is_passed)]


def _overhead_row(o: Overhead) -> list[str]:
    rates = [f"{o.fleet_per_second:.1f}", f"{o.local_per_second:.1f}"]
    return [*rates, f"{100 * o.share:.1f} %", _verdict(o.is_passed)]


def _memory_row(m: Memory) -> list[str]:
    return [f"{m.num_trials:,}", f"{m.tuner_mb:.0f} MB", f"{m.head_mb:.0f} MB"]


def _together_row(t: Together) -> list[str]:
    times = [f"{ms:.2f}" for ms in (t.untuned_ms, t.together_ms, t.alone_ms)]
    return [t.device, f"{t.num_trials}", *times, f"{100 * t.share:+.1f} %", _verdict(t.is_passed)]


def _foreign_row(f: Foreign) -> list[str]:
    if f.missing:
        return [f.network, "-", "-", f.missing, "NOT RUN"]
    return [f.network, f"{f.num_trials}", f"{f.num_valid}", f"{f.largest_error:.1e}", _verdict(f.is_passed)]


def _fault_row(f: Fault) -> list[str]:
    counts = (f.num_injected, f.num_hit, f.num_programs, f.num_lost, f.num_twice, f.num_failed, f.num_ended)
    return [f.name, *map(str, counts), f"{f.longest_s:.0f}", _verdict(f.is_passed)]


def _verdict(is_passed: bool) -> str:
    return "pass" if is_passed else "FAIL"


def as_json(found: Found) -> str:
    """The same as one JSON object."""
    content = {
        "machine": describe_machine([]),
        "method": METHOD,
        "scales": [_judged(s) | {"share": s.share} for s in found.scales],
        "overheads": [_judged(o) | {"share": o.share} for o in found.overheads],
        "memories": [asdict(m) for m in found.memories],
        "togethers": [_judged(t) | {"share": t.share} for t in found.togethers],
        "foreigns": [_judged(f) for f in found.foreigns],
        "faults": [_judged(f) for f in found.faults],
    }
    return json.dumps(content, indent=2)


def _judged(found: Scale | Overhead | Together | Foreign | Fault) -> dict[str, object]:
    return asdict(found) | {"status": "pass" if found.is_passed else "fail"}


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="for each number of devices")
    parser.add_argument("--rounds", type=int, default=5, help="of the overhead; 0 leaves it out")
    parser.add_argument("--trials", type=int, default=100_000, help="of the memory; 0 leaves it out")
    parser.add_argument("--together", type=int, default=150, help="trials of two real devices; 0 leaves it out")
    parser.add_argument("--foreign", type=int, default=40, help="trials in the emulator; 0 leaves it out")
    parser.add_argument("--faults", type=int, default=10, help="how often each; 0 leaves them out")
    parser.add_argument(
        "--fault", action="append", default=[], metavar="TEXT", help="only those with it in their name; may be repeated"
    )
    parser.add_argument("--results", metavar="FILE", help="of faults: append each run, and count those that it holds")
    parser.add_argument("--budget", type=float, default=math.inf, metavar="S", help="begin no fault after so long")
    parser.add_argument(
        "--devices", type=_numbers, default=NUM_DEVICES, metavar="N,...", help="empty: none; default: 1 to 1000"
    )
    return parser.parse_args(argv)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(arguments.positive(part) for part in text.split(",") if part)


if __name__ == "__main__":
    sys.exit(main())
