"""Equal strings mean the same on every machine: features and default programs of a foreign target."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.target.trees import Index, write_tree
from tilewright.features import Hardware
from tilewright.target import Target

PROGRAM = """
import hashlib, importlib, json, os, sys
from functools import partial
from pathlib import Path

import numpy as np

from tilewright import workloads
from tilewright.features import Hardware, statement_features
from tilewright.space import SpaceOptions, derive
from tilewright.target.machine import read_machine
from tilewright.tuning.untuned import default_trace

root, text, cores = sys.argv[1:]
target_module = importlib.import_module("tilewright.target.target")
target_module.read_machine = partial(read_machine, Path(root))
os.sched_getaffinity = lambda _: set(range(int(cores)))
native, target = target_module.Target.native(), target_module.Target.parse(text)
task = workloads.parse("c2d:1x14x14x64,64,3x3,s1,p1")
sketch = derive(task, SpaceOptions(target, 2))[0]
population = sketch.sample(np.random.default_rng(0), 64)
features = statement_features(population.schedule, 64, Hardware.from_target(target)).values
trace = default_trace(task, target, 2)
print(json.dumps({
    "caches": native.caches, "cores": native.num_cores, "target": str(target), "trace": str(trace),
    "features": hashlib.sha256(features.tobytes()).hexdigest(),
}))
"""
TARGET = "tilewright.target.target"
TREES = {
    "small": ([Index("1", "Data", "16K", "32"), Index("2", "Unified", "128K", "32")], 1),
    "large": ([Index("1", "Data", "128K"), Index("2", "Unified", "16M"), Index("3", "Unified", "256M")], 64),
}


def seen_from(tree: str, text: str, root: Path) -> dict[str, object]:
    """What a process derives for the target whose machine looks like the tree."""
    indices, num_cores = TREES[tree]
    write_tree(root / tree, indices, processor=tree)
    command = [sys.executable, "-c", PROGRAM, str(root / tree), text, str(num_cores)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("text", ["neoverse-n1", "haswell", "llvm -mcpu=skylake-avx512 -num-cores=4 -l2=2M"])
def test_a_foreign_target_has_the_same_features_and_default_program_everywhere(text: str, tmp_path: Path) -> None:
    small, large = (seen_from(tree, text, tmp_path) for tree in TREES)
    assert small.pop("caches") == [16 << 10, 128 << 10, 0, 32]  # the machines do differ
    assert large.pop("caches") == [128 << 10, 16 << 20, 256 << 20, 128]
    assert (small.pop("cores"), large.pop("cores")) == (1, 64)
    assert small == large
    assert small["target"] == str(Target.parse(text))


@pytest.mark.parametrize("text", ["native", "haswell", "riscv64"])
def test_nothing_that_a_target_says_asks_the_machine(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target.parse(text)

    def refuse(*_: object) -> None:
        raise AssertionError("a target is a value")

    for place in (f"{TARGET}.read_machine", f"{TARGET}.read_processor", f"{TARGET}.find_calibration"):
        monkeypatch.setattr(place, refuse)
    for place in ("platform.machine", "os.sched_getaffinity", "os.cpu_count", "pathlib.Path.open", "builtins.open"):
        monkeypatch.setattr(place, refuse)
    found = [getattr(target, name) for name in dir(Target) if isinstance(getattr(Target, name), property)]
    assert len(found) > 10
    assert Target.parse(str(target)) == target
    assert Hardware.from_target(target).lanes(4) == target.lanes("float32")


def test_this_machine_is_described_as_the_string_says_on_any_other(tmp_path: Path) -> None:
    text = str(Target.native())
    assert seen_from("small", text, tmp_path)["features"] == seen_from("large", text, tmp_path)["features"]
