"""Ray as the fleet uses it: where a cluster is, what its processes are given, and what joins and leaves it.

Nothing here imports Ray: its processes are started as programs, and those that talk to it are processes of their own.
"""

from __future__ import annotations

import fcntl
import importlib.util
import ipaddress
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import TilewrightError, UsageError
from tilewright.measure.fleet.station import DeviceSpec
from tilewright.measure.fleet.turns import state_folder

DEFAULT_PORT = 6379
LOOPBACK = "127.0.0.1"
NAMESPACE = "tilewright"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_CONNECT_S = 3.0
_JOIN_S = 90.0
_LEAVE_S = 20.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where the head of a cluster listens.

    >>> str(Address.parse("10.0.0.4")), str(Address.parse("localhost:7000"))
    ('10.0.0.4:6379', '127.0.0.1:7000')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        host, _, port = text.partition(":")
        if not host or not re.fullmatch(r"[A-Za-z0-9.-]+", host) or not re.fullmatch(r"[0-9]{0,5}", port):
            raise UsageError(f"the address of a fleet is {text!r}; it must be HOST or HOST:PORT, such as 10.0.0.4:6379")
        number = int(port) if port else DEFAULT_PORT
        if not 0 < number < 2**16:
            raise UsageError(f"the port of the fleet's address {text!r} is {number}; it must be from 1 to 65535")
        return cls(LOOPBACK if host == "localhost" else host, number)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def answers(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), _CONNECT_S):
                return True
        except OSError:
            return False


def checked_device_name(name: str) -> str:
    """A name that fits file names and command lines."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"a device is called {name!r}; use letters, digits and ._- only, at most 64")
    return name


def require_ray() -> None:
    """Ray is an extra."""
    if importlib.util.find_spec("ray") is None:
        raise UsageError("a fleet needs Ray, which is not installed; pip install 'tilewright[fleet]'")


def ray_environment(address: Address) -> dict[str, str]:
    """What every process that has to do with the cluster is given.

    A cluster on the loopback address listens there alone. All of them must show the token.
    """
    given = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        # Programs are timed by workers: they must not wait for whatever else goes on.
        "RAY_worker_niceness": "0",
        # A node that is gone is noticed in seconds, and a head in less than a minute.
        "RAY_health_check_initial_delay_ms": "2000",
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_timeout_ms": "3000",
        "RAY_health_check_failure_threshold": "3",
        "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
        "RAY_gcs_server_request_timeout_seconds": "5",
        # Without these the head keeps something of every call for its dashboard, which nobody has.
        "RAY_task_events_report_interval_ms": "0",
        "RAY_task_events_max_num_task_in_gcs": "100",
        "RAY_event_stats": "0",
        "RAY_enable_metrics_collection": "0",
    }
    if address.is_loopback:
        # The name is of another system, but this is the switch: nodes are then known as 127.0.0.1, and listen there.
        given["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    environment = os.environ | given
    environment.setdefault("RAY_AUTH_MODE", "token")
    return environment


def ensure_token(is_head: bool) -> None:
    """The shared secret of a cluster: where Ray looks for it; a head makes one if there is none."""
    if os.environ.get("RAY_AUTH_MODE", "token") != "token" or os.environ.get("RAY_AUTH_TOKEN"):
        return
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    if path.is_file() and path.stat().st_size:
        return
    if not is_head:
        raise UsageError(
            f"the machines of a fleet share a secret, and there is none in {path}; copy that file from the machine of "
            "the head"
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secrets.token_hex(32))


@dataclass(frozen=True, slots=True)
class Node:
    """A machine as it is to be part of a cluster; `listen` is where a head binds, without one it joins."""

    address: Address
    is_head: bool
    spec: DeviceSpec
    folder: str
    dies_with: int | None = None
    """The process that it ends with."""

    def write(self) -> str:
        address = str(self.address)
        return json.dumps([address, self.is_head, self.spec.write(), self.folder, self.dies_with, os.getpid()])

    @classmethod
    def read(cls, text: str) -> Node:
        address, is_head, spec, folder, dies_with, _ = json.loads(text)
        return cls(Address.parse(address), is_head, DeviceSpec.read(spec), folder, dies_with)


def start_node(node: Node) -> int:
    """Have a keeper run the node, and wait until its device is there; the keeper's process id."""
    try:
        _check_start(node)
    except UsageError:
        shutil.rmtree(node.folder, ignore_errors=True)
        raise
    name = node.spec.name
    state = node_file(name)
    state.parent.mkdir(mode=0o700, exist_ok=True)
    log_path = state.with_suffix(".log")
    keeper = _spawn_keeper(node, log_path)
    until_s = time.monotonic() + _JOIN_S
    while time.monotonic() < until_s:
        if any(known["name"] == name and known["is_ready"] for known in running_nodes()):
            return keeper
        if _has_ended(keeper):
            break
        time.sleep(0.1)
    stop_node(name)
    hint = "" if node.is_head else "; is a fleet of this version there, and is its secret here?"
    raise TilewrightError(f"{name} did not join the fleet at {node.address}: {_last_words(log_path)}{hint}")


def _check_start(node: Node) -> None:
    """Before any process is started."""
    require_ray()
    ensure_token(node.is_head)
    name = checked_device_name(node.spec.name)
    if any(known["name"] == name for known in running_nodes()):
        raise UsageError(f"a device {name} of a fleet runs here already; name another one with --as, or end it first")
    if node.is_head and node.address.answers:
        raise UsageError(
            f"{node.address} is in use; join the fleet that is there with --address {node.address}, or start one at "
            f"another port with --listen {node.address.host}:PORT"
        )
    if not node.is_head and not node.address.answers:
        raise UsageError(no_cluster(node.address))


def _spawn_keeper(node: Node, log_path: Path) -> int:
    """A process that outlives this one, in a session of its own."""
    command = [sys.executable, "-m", "tilewright.measure.fleet.keeper", node.write()]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log_path), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawn(sys.executable, command, ray_environment(node.address), file_actions=files, setsid=True)


def _has_ended(pid: int) -> bool:
    """Whether a process has; of a child nothing is left then."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not Path(f"/proc/{pid}").exists()


def node_file(name: str) -> Path:
    """What is known of a node here; its keeper holds a lock on it."""
    return state_folder() / "nodes" / f"{name}.json"


def running_nodes() -> list[dict[str, Any]]:
    """The nodes that were started on this machine and run."""
    return sorted(_nodes(), key=lambda node: str(node["name"]))


def _nodes() -> Iterator[dict[str, Any]]:
    for path in (state_folder() / "nodes").glob("*.json"):
        try:
            with path.open() as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield json.load(file)
        except (OSError, ValueError):
            continue  # it is being written, or removed


def stop_node(name: str) -> None:
    """End a node and all its processes; none is left when this returns."""
    pids = [node["pid"] for node in running_nodes() if node["name"] == name]
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    until_s = time.monotonic() + _LEAVE_S
    while not all(map(_has_ended, pids)) and time.monotonic() < until_s:
        time.sleep(0.05)


def find_address(address: str | None) -> Address:
    """The cluster that is meant: the one given, or that of this machine."""
    if address not in (None, "auto"):
        return Address.parse(str(address))
    known = running_nodes()
    if known:
        return Address.parse(known[0]["address"])
    given = os.environ.get("RAY_ADDRESS")
    return Address.parse(given) if given else Address(LOOPBACK, DEFAULT_PORT)


def no_cluster(address: Address) -> str:
    """What to say where nobody answers."""
    if address == Address(LOOPBACK, DEFAULT_PORT):
        how = "start one with `tilewright fleet up`, or one for a single command with --fleet local"
    elif address.is_loopback:
        how = f"start one with `tilewright fleet up --listen {address}`, or one for a single command with --fleet local"
    else:
        how = f"start it there with `tilewright fleet up --listen {address}`"
    return f"there is no fleet at {address}; {how}"


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def new_folder() -> str:
    """Where the processes of a node write. Sockets are in it, whose names must be short."""
    return tempfile.mkdtemp(prefix="twf-", dir="/tmp" if os.path.isdir("/tmp") else None)


def _last_words(path: Path) -> str:
    """The last lines of a log that differ, without their times; those of a joining node say the same many times."""
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    words = dict.fromkeys(re.sub(r"^\[.*?\]\s*", "", line) for line in reversed(lines))
    return " ".join(reversed(list(words)[:3])) or "it says nothing"
