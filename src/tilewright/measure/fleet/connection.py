"""The tuner's end of the `link`: a process that talks to the cluster for it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from pathlib import Path

from tilewright.errors import TilewrightError, UsageError
from tilewright.measure.fleet import cluster
from tilewright.measure.fleet.cluster import Address
from tilewright.measure.fleet.devices import DeviceInfo, Form

_END_S = 10.0


class LinkLostError(Exception):
    """The process that talks to the cluster is gone. Never leaves the fleet."""


class Link:
    """The other end of `link`: a process that ends with this object, or with the cluster."""

    def __init__(self, address: Address) -> None:
        if not address.answers:
            raise UsageError(cluster.no_cluster(address))
        cluster.ensure_token(is_head=False)
        ours, theirs = socket.socketpair()
        self._log = Path(cluster.new_folder()) / "link.log"
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tilewright.measure.fleet.link", str(address), str(theirs.fileno())],
                env=cluster.ray_environment(address),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._socket = ours
        self._reader = ours.makefile("rb")
        self.num_devices = 0
        try:
            hello = self._first("hello")
            self.devices = [DeviceInfo.read(form) for form in hello["hello"]]
            self.strangers: dict[str, str] = hello["strangers"]
        except LinkLostError:
            words = self._log.read_text(errors="replace").strip().splitlines()[-3:]
            self.close()
            raise TilewrightError(f"the fleet at {address} does not take this machine: {' '.join(words)}") from None
        except BaseException:
            self.close()
            raise

    def send(self, message: Form) -> None:
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise LinkLostError from error

    def receive(self) -> Form:
        """The next message that is not for the link itself."""
        while True:
            try:
                line = self._reader.readline()
            except OSError as error:
                raise LinkLostError from error
            if not line.endswith(b"\n"):
                raise LinkLostError
            message: Form = json.loads(line)
            if "devices" not in message:
                return message
            self.num_devices = message["devices"]

    def statuses(self) -> Form:
        """What each machine is doing."""
        self.send({"do": "status"})
        found: Form = self._first("statuses")["statuses"]
        return found

    def close(self) -> None:
        self._reader.close()
        self._socket.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(OSError):
            self._log.unlink()
            self._log.parent.rmdir()

    def _first(self, name: str) -> Form:
        while name not in (message := self.receive()):
            pass
        return message
