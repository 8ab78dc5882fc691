"""Faults of a fleet, each many times at random moments of a run: is a program lost, told twice, or a run without end?

Two devices of this machine, a core each: `alpha`, the head, and `beta`. In each run one thing goes wrong, after a
random number of results; the next run begins when both devices are back.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial

from benchmarks.fleet_cluster import CORES, Cluster, cluster_of, processes_of
from tilewright import workloads
from tilewright.errors import TilewrightError
from tilewright.measure import OK, Batch, MeasureOptions
from tilewright.measure.fleet import DeviceSpec, Fleet, fleet_status, running_nodes
from tilewright.schedule import Trace
from tilewright.target import Target

_LEAST, _BATCH = 32, 8  # programs of a run, and what is submitted at once
_WORKLOAD = "gmm:64x64x64"
_LONGEST_S = 240.0
_AFTER_S = 2.0  # a run goes on for so long after the fault at least
_BACK_S = 120.0
_FORK_SERVER = "fork_server"  # the process that starts builders and runners, and those themselves
_OPTIONS = MeasureOptions(run_timeout_s=3.0)

Breaks = Callable[[Cluster, random.Random], int]
"""Does something to the cluster; how many processes it hit."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What came of the runs in which something went wrong."""

    name: str
    num_injected: int = 0
    num_hit: int = 0
    """Processes that were killed, stopped, started or disturbed."""
    num_programs: int = 0
    num_lost: int = 0
    num_twice: int = 0
    num_failed: int = 0
    """Told with another status than OK."""
    num_events: int = 0
    """What the display said."""
    num_ended: int = 0
    """Runs that ended by themselves."""
    longest_s: float = 0.0
    said: tuple[str, ...] = ()
    """Why programs failed, or a run did not end."""

    @property
    def is_passed(self) -> bool:
        """That nothing was injected says nothing."""
        is_clean = not (self.num_lost or self.num_twice or self.num_failed)
        return is_clean and self.num_ended == self.num_injected and self.num_hit >= self.num_injected > 0


def faults(times: int, only: Sequence[str] = (), path: str | None = None, budget_s: float = math.inf) -> list[Fault]:
    """Every fault so many times, or those whose name has one of the texts.

    Each run is appended to the file of the path at once, and the runs that it holds already count: so they may be made
    in pieces, of which none begins a run after `budget_s` seconds.
    """
    until_s = time.monotonic() + budget_s
    found = {name: fault for name, fault in _read(path).items() if not only or any(text in name for text in only)}
    missing = [name for name, fault in found.items() if fault.num_injected < times]
    if not missing:
        return list(found.values())
    native = str(Target.native())
    specs = [DeviceSpec("alpha", native, CORES[:1], 1), DeviceSpec("beta", native, CORES[-1:], 1)]
    with cluster_of(specs) as cluster:
        for name in missing:
            while found[name].num_injected < times and time.monotonic() < until_s:
                rng = random.Random(f"{name} {found[name].num_injected}")
                run = _injected(name, cluster, rng)
                print(run, file=sys.stderr, flush=True)
                _append(path, run)
                found[name] = _summed(found[name], run)
    return list(found.values())


def _read(path: str | None) -> dict[str, Fault]:
    """What is known of each fault."""
    found = {name: Fault(name) for name in FAULTS}
    if path is not None and os.path.exists(path):
        with open(path) as file:
            for run in map(_fault_of, file):
                found[run.name] = _summed(found[run.name], run)
    return found


def _fault_of(line: str) -> Fault:
    content = json.loads(line)
    return Fault(**content | {"said": tuple(content["said"])})


def _append(path: str | None, run: Fault) -> None:
    if path is not None:
        with open(path, "a") as file:
            file.write(json.dumps(asdict(run)) + "\n")


def _summed(a: Fault, b: Fault) -> Fault:
    """Of two that are called the same."""
    counts = {f.name: getattr(a, f.name) + getattr(b, f.name) for f in fields(Fault) if f.name.startswith("num_")}
    return replace(a, **counts, longest_s=max(a.longest_s, b.longest_s), said=a.said + b.said)


def _injected(name: str, cluster: Cluster, rng: random.Random) -> Fault:
    """One run, in which something goes wrong."""
    _wait_until_back(cluster)
    breaks = FAULTS[name]
    run = _Run(cluster, breaks, rng)
    try:
        with _limited():
            run.go()
    except TilewrightError as error:
        run.errors.append(str(error))
    return Fault(
        name,
        num_injected=1,
        num_hit=run.num_hit,
        num_programs=len(run.tickets),
        num_lost=len(run.tickets - run.told.keys()),
        num_twice=sum(count - 1 for count in run.told.values()) + len(run.told.keys() - run.tickets),
        num_failed=run.statuses.total() - run.statuses[OK],
        num_events=len(run.events),
        num_ended=int(run.is_ended),
        longest_s=time.monotonic() - run.started_s,
        said=tuple(run.errors),
    )


class _Run:
    """Programs are measured before, while and after something goes wrong."""

    def __init__(self, cluster: Cluster, breaks: Breaks, rng: random.Random) -> None:
        self._cluster = cluster
        self._breaks = breaks
        self._rng = rng
        self._moment = rng.randrange(_LEAST)
        self.started_s = time.monotonic()
        self.tickets: set[int] = set()
        self.told: Counter[int] = Counter()
        self.statuses: Counter[str] = Counter()
        self.events: list[str] = []
        self.errors: list[str] = []
        self.num_hit = 0
        self.is_ended = False

    def go(self) -> None:
        injecting = threading.Thread(target=self._inject)
        with Fleet(str(self._cluster.address), threads=1, options=_OPTIONS, on_event=self.events.append) as fleet:
            try:
                while True:
                    is_over = injecting.ident is not None and not injecting.is_alive()
                    while len(self.tickets) - self.told.total() < _BATCH and not is_over:
                        self._submit(fleet)
                    if len(self.tickets) == self.told.total():
                        break
                    if self.told.total() >= self._moment and injecting.ident is None:
                        injecting.start()
                    ticket, measurement = fleet.next_result()
                    self.told[ticket] += 1
                    self.statuses[measurement.status] += 1
                    if measurement.status != OK:
                        self.errors.append(f"{measurement.status}: {measurement.error}")
                self.is_ended = True
            finally:
                if injecting.ident is not None:
                    injecting.join()

    def _submit(self, fleet: Fleet) -> None:
        """Many times the same small program; it need not be checked each time."""
        batch = Batch(workloads.parse(_WORKLOAD), (Trace(),) * _BATCH, best_latency_s=1e-3)
        self.tickets.update(fleet.submit(batch))

    def _inject(self) -> None:
        time.sleep(self._rng.uniform(0.0, 0.05))
        self.num_hit = self._breaks(self._cluster, self._rng)
        time.sleep(_AFTER_S)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Interrupt what does not end by itself."""

    def stop(*_: object) -> None:
        raise TilewrightError("the run did not end by itself")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _wait_until_back(cluster: Cluster) -> None:
    """Until both devices answer, and nothing of the last fault is left."""
    until_s = time.monotonic() + _BACK_S
    while time.monotonic() < until_s:
        with contextlib.suppress(TilewrightError):
            statuses = {device.name: status for device, status in fleet_status(str(cluster.address))}
            if statuses.keys() == {"alpha", "beta"} and not any("lost" in status for status in statuses.values()):
                return
        time.sleep(0.5)
    raise TilewrightError(f"the devices did not come back in {_BACK_S:.0f} s; there are {running_nodes()}")


def _signal(pids: list[int], number: signal.Signals) -> int:
    hit = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            hit += 1
    return hit


def _kill(name: str, part: str, cluster: Cluster, rng: random.Random) -> int:
    return _signal(processes_of(name, part), signal.SIGKILL)


def _of_workers(number: signal.Signals, cluster: Cluster, rng: random.Random) -> int:
    """One of the processes that run or build, or start those, of a random device."""
    pids = processes_of(rng.choice(["alpha", "beta"]), _FORK_SERVER)
    return _signal([rng.choice(pids)] if pids else [], number)


def _cut_off(cluster: Cluster, rng: random.Random) -> int:
    """As if the network were gone for a while: no process of the node answers. Then it is back."""
    pids = processes_of("beta")
    hit = _signal(pids, signal.SIGSTOP)
    time.sleep(rng.uniform(1.0, 20.0))
    _signal(pids, signal.SIGCONT)
    return hit


def _join_late(cluster: Cluster, rng: random.Random) -> int:
    """A third device is there for a while, and measures: what is hit are the processes of its trials."""
    cluster.add(DeviceSpec("gamma", str(Target.native()), CORES[-1:], 1))
    time.sleep(rng.uniform(3.0, 6.0))
    hit = len(processes_of("gamma", _FORK_SERVER))
    cluster.remove("gamma")
    return hit


def _slow_down(cluster: Cluster, rng: random.Random) -> int:
    """Twelve others want the core of beta for some seconds."""
    spin = [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{CORES[-1]}])\nwhile True: pass"]
    others = [subprocess.Popen(spin) for _ in range(12)]
    try:
        time.sleep(rng.uniform(2.0, 5.0))
    finally:
        for other in others:
            other.kill()
            other.wait()
    return len(others)


FAULTS: dict[str, Breaks] = {
    "runner, builder or fork server killed": partial(_of_workers, signal.SIGKILL),
    "runner, builder or fork server stopped": partial(_of_workers, signal.SIGSTOP),
    "actor killed": partial(_kill, "beta", "ray::Station"),
    "node killed, and comes back": partial(_kill, "beta", ""),
    "network gone for 1 to 20 s": _cut_off,
    "device joins late, and leaves": _join_late,
    "device twelve times slower": _slow_down,
    "head killed, and comes back": partial(_kill, "alpha", ""),
}
"""What is done to the cluster, by what it is called."""
