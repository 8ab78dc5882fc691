"""Clusters of this machine for `benchmarks.fleet`, in folders of their own, and the processes that they consist of."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tilewright.measure.fleet import Address, DeviceSpec, Node, running_nodes, start_node, stop_node
from tilewright.measure.fleet.cluster import LOOPBACK, free_port, new_folder
from tilewright.target import Target, default_threads

CORES = tuple(sorted(os.sched_getaffinity(0)))


def here(simulated: int = 0) -> DeviceSpec:
    """This machine as one device, or as many that are simulated."""
    return DeviceSpec("bench", str(Target.native()), CORES, default_threads(), simulated=simulated)


class Cluster:
    """Nodes on this machine, of which the first is the head."""

    def __init__(self) -> None:
        self.address = Address(LOOPBACK, free_port())
        self._names: list[str] = []

    def add(self, spec: DeviceSpec) -> None:
        is_head = not self._names
        self._names.append(spec.name)
        start_node(Node(self.address, is_head, spec, new_folder(), dies_with=os.getpid()))

    def remove(self, name: str) -> None:
        stop_node(name)
        self._names.remove(name)

    def close(self) -> None:
        for name in reversed(self._names):
            stop_node(name)


@contextmanager
def cluster_of(specs: Sequence[DeviceSpec]) -> Iterator[Cluster]:
    """A cluster of these devices, which ends with the block."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        os.environ["TILEWRIGHT_FLEET"] = folder
        os.environ["RAY_AUTH_TOKEN_PATH"] = os.path.join(folder, "token")
        cluster = Cluster()
        try:
            for spec in specs:
                cluster.add(spec)
            yield cluster
        finally:
            cluster.close()


def processes_of(name: str, part: str = "") -> list[int]:
    """The processes of a node, without its keeper, whose command has the text."""
    return [pid for node in running_nodes() if node["name"] == name for pid in descendants(node["pid"], part)]


def descendants(pid: int, part: str = "") -> list[int]:
    """Processes below one whose command has the text."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in path.read_text().split()]
        except OSError:
            continue
        for child in children:
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found += [child] * (part in command) + descendants(child, part)
    return found


def resident_mb(pid: int) -> float:
    """What a process has in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
