"""A small real cluster on this machine, for tests: a head with a device of core 0, and others that join it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tilewright.measure.fleet import Address, DeviceSpec, Node, running_nodes, start_node, stop_node
from tilewright.measure.fleet.cluster import LOOPBACK, free_port, new_folder
from tilewright.target import Target

CORES = tuple(sorted(os.sched_getaffinity(0)))


class Cluster:
    """Starts nodes, and ends them all."""

    def __init__(self) -> None:
        self.address = Address(LOOPBACK, free_port())
        self.names: list[str] = []

    def add(self, name: str, *, num_builders: int = 1, emulator: str = "", target: str = "", simulated: int = 0) -> int:
        """The process id of what keeps the node."""
        spec = DeviceSpec(name, target or str(Target.native()), CORES[:1], num_builders, emulator, simulated)
        self.names.append(name)
        return start_node(Node(self.address, len(self.names) == 1, spec, new_folder(), dies_with=os.getpid()))

    def close(self) -> None:
        for name in reversed(self.names):
            stop_node(name)


def processes_of(name: str, part: str) -> list[int]:
    """The processes of a node whose command line has the text."""
    (keeper,) = (node["pid"] for node in running_nodes() if node["name"] == name)
    found = []
    waiting = [keeper]
    while waiting:
        pid = waiting.pop()
        try:
            children = " ".join(p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/children")).split()
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        waiting += map(int, children)
        if pid != keeper and part in command:
            found.append(pid)
    return found


def kill_all(pids: list[int]) -> None:
    assert pids, "there is somebody to kill"
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
