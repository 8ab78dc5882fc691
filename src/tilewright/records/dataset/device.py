"""`Device`: where the programs of a part of a dataset ran."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shown
from typing import Any

from tilewright.errors import CodegenError, UsageError
from tilewright.records.dataset.files import broken, read_json, write_json
from tilewright.target import MAX_THREADS, Target, stands_for

FILE_NAME = "device.json"
_KIND = "device"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")


@dataclass(frozen=True, slots=True)
class Device:
    """A processor, the code that is generated for it and the threads that run it.

    The `target`, whose string holds caches and what was calibrated, says all that models know of it. Of a log of
    another tool, which says less, `tool` is the name, `target` what the log says, and `threads` is 0.
    """

    name: str
    target: str
    threads: int
    processor: str = ""
    """The name that its maker gave it."""
    tool: str = ""
    """What wrote the log that the programs come from; empty where tilewright measured them."""

    def is_same(self, other: Device) -> bool:
        """Whether latencies of both can be compared: calibrating a machine makes no other device of it.

        The device of a log is known by its name alone: logs of one have several targets, and logs of two the same.
        """
        mine, theirs = (self.threads, self.processor, self.tool), (other.threads, other.processor, other.tool)
        if mine != theirs:
            return False
        if self.tool:
            return self.name == other.name
        return self.target == other.target or stands_for(self.target, Target.parse(other.target))

    def write(self, folder: Path) -> None:
        """Write it as what the programs in `folder` were measured on."""
        content = {name: getattr(self, name) for name in ("name", "target", "threads", "processor", "tool")}
        write_json(folder / FILE_NAME, _KIND, content)

    @staticmethod
    def read(folder: Path) -> Device:
        """The device of a folder; its name is that of the folder, which may have been changed."""
        path = folder / FILE_NAME
        data = read_json(path, _KIND)
        for field in ("target", "processor", "tool"):
            if not isinstance(data.get(field), str):
                raise broken(path, f"{field} must be a string, got {shown(data.get(field))}")
        _check_threads(path, data.get("threads"), is_log=bool(data["tool"]))
        if not data["tool"]:
            _check_target(path, data["target"])
        return Device(folder.name, data["target"], data["threads"], data["processor"], data["tool"])


def checked_name(name: str) -> str:
    """The name of a device, which is also that of its folder."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"the device is called {name!r}; a name has up to 64 letters, digits and -, _, . or +, and begins with a "
            "letter or a digit"
        )
    return name


def _check_threads(path: Path, threads: Any, is_log: bool) -> None:
    least = 0 if is_log else 1
    if type(threads) is not int or not least <= threads <= MAX_THREADS:
        raise broken(path, f"threads must be a whole number from {least} to {MAX_THREADS}, got {shown(threads)}")


def _check_target(path: Path, text: str) -> None:
    try:
        target = Target.parse(text)
    except CodegenError as error:
        raise broken(path, f"target: {error}") from error
    # Not so of "native", which is another machine wherever it is read. Other texts may differ from what is written
    # today: a number of a calibrated core may be what its processor begins with by now.
    if not stands_for(text, target):
        raise broken(path, f"target must say all that is known of it, as {shown(str(target))} does, got {shown(text)}")
