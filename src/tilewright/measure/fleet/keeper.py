"""The process that keeps a machine in the fleet: it runs a Ray node, enlists the device, and begins again when either
is lost, as after a head that was started anew.

`python -m tilewright.measure.fleet.keeper NODE`, as `cluster.start_node` starts it. SIGTERM ends it, and with it all
processes that it has started.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from tilewright.measure.fleet.cluster import Node, node_file

_PR_SET_CHILD_SUBREAPER = 36
_PAUSE_S = 1.0
_ENLIST_S = 60.0
_END_S = 2.0
_LEAVE_S = 8.0
_LOOK_S = 0.25
_OBJECT_STORE_BYTES = 100_000_000


class _EndError(Exception):
    """Somebody wants it to end."""


def main(text: str) -> None:
    """Keep the node until a signal, or the end of the process it belongs to."""
    node = Node.read(text)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what loses its parent is ours, to be ended
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    path = node_file(node.spec.name)
    with open(path, "a+") as state:
        fcntl.flock(state, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            _Keeper(node, state, ended).keep()
        except _EndError:
            _leave(node)
        finally:
            _end_descendants()
            path.unlink(missing_ok=True)
            shutil.rmtree(node.folder, ignore_errors=True)


def _leave(node: Node) -> None:
    """Tell the cluster that the device does not come back; one that ends with this node need not know."""
    if node.is_head or not node.address.answers:
        return
    program = [sys.executable, "-m", "tilewright.measure.fleet.enlist", str(node.address), node.spec.write(), "leave"]
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(program, stdin=subprocess.DEVNULL, timeout=_LEAVE_S, check=False)


class _Keeper:
    def __init__(self, node: Node, state: TextIO, ended: threading.Event) -> None:
        self._node = node
        self._state = state
        self._ended = ended

    def keep(self) -> None:
        while True:
            self._write(is_ready=False)
            ray = self._start_ray()
            if self._enlist(ray):
                self._write(is_ready=True)
                print(f"{self._node.spec.name} is in the fleet at {self._node.address}", flush=True)
                while ray.poll() is None:
                    self._rest(_LOOK_S)
            print("the node has ended; it is started again", flush=True)
            _end_descendants()
            self._rest(_PAUSE_S)

    def _start_ray(self) -> subprocess.Popen[bytes]:
        address, name = self._node.address, self._node.spec.name
        common = ["--block", "--disable-usage-stats", f"--object-store-memory={_OBJECT_STORE_BYTES}", "--num-cpus=0",
                  f"--resources={json.dumps({f'tilewright-{name}': 1})}", "--include-log-monitor=false"]  # fmt: skip
        if self._node.is_head:
            where = ["--head", f"--port={address.port}", f"--node-ip-address={address.host}",
                     "--include-dashboard=false", f"--temp-dir={self._node.folder}"]  # fmt: skip
        else:
            where = [f"--address={address}"]
        command = [sys.executable, "-m", "tilewright.measure.fleet.ray_start", "start", *where, *common]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def _enlist(self, ray: subprocess.Popen[bytes]) -> bool:
        """Try until the device is there; False if the node ended before."""
        until_s = time.monotonic() + _ENLIST_S
        while ray.poll() is None and time.monotonic() < until_s:
            self._rest(_LOOK_S)
            if not self._node.address.answers:
                continue
            program = [sys.executable, "-m", "tilewright.measure.fleet.enlist"]
            enlisting = subprocess.Popen([*program, str(self._node.address), self._node.spec.write()])
            while enlisting.poll() is None and ray.poll() is None:
                self._rest(_LOOK_S / 5)
            if enlisting.poll() == 0:
                return True
        return False

    def _write(self, *, is_ready: bool) -> None:
        self._state.seek(0)
        self._state.truncate()
        content = {
            "pid": os.getpid(),
            "name": self._node.spec.name,
            "address": str(self._node.address),
            "is_head": self._node.is_head,
            "is_ready": is_ready,
        }
        self._state.write(json.dumps(content))
        self._state.flush()

    def _rest(self, seconds: float) -> None:
        owner = self._node.dies_with
        if self._ended.wait(seconds) or (owner is not None and not Path(f"/proc/{owner}").exists()):
            raise _EndError


def _end_descendants() -> None:
    """First gently, so that Ray tells its head; then whatever is left."""
    for pid in _descendants(os.getpid(), depth=1):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    until_s = time.monotonic() + _END_S
    while _reaped_all():
        if time.monotonic() > until_s:
            for pid in _descendants(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _reaped_all() -> bool:
    """Take leave of the children that ended; whether there are others."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _descendants(pid: int, depth: int = 64) -> Iterator[int]:
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                if depth > 1:
                    yield from _descendants(child, depth - 1)


if __name__ == "__main__":
    main(sys.argv[1])
