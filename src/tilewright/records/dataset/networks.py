"""`NetworkTasks`: which tasks a network has, and how many kernels each stands for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shown

from tilewright.records.dataset.files import broken, read_json, write_json

_KIND = "network"
_MAX_WEIGHT = 1_000_000
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class NetworkTasks:
    """A network, or a single workload, of which a dataset has tasks.

    `name` is shared by its variants, `sizes` tells them apart, such as "input=4x3x224x224". `weights` has for the hash
    of each task how many kernels of the network it stands for. `context` is what its kernels find in the caches.
    """

    name: str
    weights: Mapping[str, int]
    context: str
    sizes: str = ""
    is_workload: bool = False

    @property
    def title(self) -> str:
        """The name with the sizes."""
        return f"{self.name}[{self.sizes}]" if self.sizes else self.name

    def path(self, folder: Path) -> Path:
        """Where it stands among the networks of a dataset, if no other has the place."""
        return folder / f"{_file_name(self.title)}.json"

    def second_path(self, folder: Path) -> Path:
        """Where it stands if another does whose title is spelt alike: as a file is called, or in its beginning."""
        digest = hashlib.sha256(self.title.encode(errors="backslashreplace")).hexdigest()[:_DIGITS]
        return folder / f"{_file_name(self.title)}-{digest}.json"

    def write(self, path: Path) -> None:
        """Put its file in its place."""
        content = {
            "name": self.name,
            "sizes": self.sizes,
            "context": self.context,
            "is_workload": self.is_workload,
            "weights": dict(self.weights),
        }
        write_json(path, _KIND, content)

    @staticmethod
    def read(path: Path) -> NetworkTasks:
        """RecordFormatError says what is wrong with a file that holds none."""
        data = read_json(path, _KIND)
        for field in ("name", "sizes", "context"):
            if not isinstance(data.get(field), str):
                raise broken(path, f"{field} must be a string, got {shown(data.get(field))}")
        weights = data.get("weights")
        if not isinstance(weights, dict) or not all(map(_is_weight, weights.values())):
            raise broken(path, f"weights are whole numbers from 1 to {_MAX_WEIGHT} by task, got {shown(weights)}")
        return NetworkTasks(data["name"], weights, data["context"], data["sizes"], data.get("is_workload") is True)


def _is_weight(value: object) -> bool:
    return type(value) is int and 1 <= value <= _MAX_WEIGHT


def _file_name(title: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.=,@-]+", "_", title.replace("[", "@").rstrip("]"))[:120]
