"""Networks that a fleet tunes: for two real devices of this machine at once, and for a foreign one in an emulator."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fleet_cluster import CORES, cluster_of
from tilewright.deploy.export_c import export_c
from tilewright.measure.fleet import DeviceSpec, Fleet
from tilewright.network import InferenceSession, TunedNetwork, read_network, tune_network, tune_network_for
from tilewright.runtime import interleave
from tilewright.target import Target
from tilewright.zoo import inputs_for

NETWORK = "zoo:resnet18"
MOST_SLOWER = 0.05
_ARCH = "aarch64"
_EMULATOR, _COMPILER = f"qemu-{_ARCH}", f"{_ARCH}-linux-gnu-gcc"
_LIBRARIES = f"/usr/{_ARCH}-linux-gnu"
_SMALL = {"input": (1, 3, 32, 32)}  # an emulator takes a hundred times as long
_TOLERANCE = 1e-3
_ROUNDS = 15


@dataclass(frozen=True, slots=True)
class Together:
    """A device that was tuned for with another one, and alone with as many trials."""

    device: str
    num_trials: int
    untuned_ms: float
    together_ms: float
    alone_ms: float

    @property
    def share(self) -> float:
        """By how much the artifact of both is slower."""
        return self.together_ms / self.alone_ms - 1

    @property
    def is_passed(self) -> bool:
        return self.share <= MOST_SLOWER


@dataclass(frozen=True, slots=True)
class Foreign:
    """A network for another architecture: tuned, and its artifact run in an emulator."""

    network: str
    num_trials: int
    num_valid: int
    largest_error: float
    """Of its outputs, relative to the largest of them, against the network on this machine."""
    missing: str = ""
    """What is not installed here; then nothing was run."""

    @property
    def is_passed(self) -> bool:
        return not self.missing and self.num_valid > 0 and self.largest_error <= _TOLERANCE


def together(trials: int) -> list[Together]:
    """Two devices of this machine, a core each; both in one run, then each alone."""
    targets = {"native": str(Target.native()), "haswell": str(Target.parse("llvm -mcpu=haswell"))}
    specs = [
        DeviceSpec(name, target, (core,), 1)
        for (name, target), core in zip(targets.items(), (CORES[0], CORES[-1]), strict=True)
    ]
    with cluster_of(specs) as cluster, ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        fleets = {
            name: stack.enter_context(Fleet(str(cluster.address), devices=[name], threads=1, on_event=_say))
            for name in targets
        }
        _say(f"{NETWORK} for {' and '.join(targets)}, {trials} trials each")
        both = tune_network_for(NETWORK, fleets, trials=trials, records=os.path.join(folder, "both.jsonl"))
        found = []
        for name, fleet in fleets.items():
            _say(f"{NETWORK} for {name} alone")
            alone = tune_network(
                NETWORK,
                trials=trials,
                records=os.path.join(folder, f"{name}.jsonl"),
                target=fleet.target,
                threads=1,
                measurer=fleet,
            )
            found.append(_compared(name, trials, both[name], alone))
        return found


def _compared(name: str, trials: int, both: TunedNetwork, alone: TunedNetwork) -> Together:
    """In turns."""
    models = {"untuned": alone.untuned.model, "together": both.model, "alone": alone.model}
    inputs = inputs_for(alone.model.input_types, read_network(NETWORK))
    calls = {kind: partial(InferenceSession(model).run, None, inputs) for kind, model in models.items()}
    timings = interleave(calls, rounds=_ROUNDS)
    return Together(name, trials, *(timings[kind].median_s * 1e3 for kind in models))


def foreign(trials: int) -> Foreign:
    """A small network, measured in an emulator; then its artifact as a C library there."""
    missing = [program for program in (_EMULATOR, _COMPILER) if shutil.which(program) is None]
    if missing:
        return Foreign(NETWORK, 0, 0, np.inf, f"{' and '.join(missing)} not installed: make cross-tools")
    _say(f"{NETWORK} for {_ARCH} in {_EMULATOR}, {trials} trials")
    spec = DeviceSpec("board", str(Target.parse(_ARCH)), CORES, len(CORES), emulator=_EMULATOR)
    with cluster_of([spec]) as cluster, Fleet(str(cluster.address), threads=1, on_event=_say) as fleet:
        began_s = time.monotonic()
        tuned = tune_network(
            NETWORK, trials=trials, shapes=_SMALL, target=fleet.target, threads=1, measurer=fleet
        )  # fmt: skip
        _say(f"tuned in {time.monotonic() - began_s:.0f} s")
    num_valid = sum(task.best is not None for task in tuned.result.tasks)
    return Foreign(NETWORK, tuned.result.num_trials, num_valid, largest_error(tuned))


def largest_error(tuned: TunedNetwork) -> float:
    """Of the outputs of the artifact in the emulator, against this machine's own kernels."""
    inputs = inputs_for(tuned.model.input_types, read_network(NETWORK))
    expected = InferenceSession(NETWORK, shapes=_SMALL).run(None, inputs)
    errors = [
        float(np.max(np.abs(own - there)) / np.max(np.abs(own)))
        for own, there in zip(expected, run_artifact(tuned, inputs, expected), strict=True)
    ]
    return max(errors)


def run_artifact(tuned: TunedNetwork, inputs: dict[str, NDArray[Any]], like: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The artifact as a C library with its example, cross-compiled, and run in the emulator."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        export_c(tuned.model, folder, compiler=_COMPILER)
        build = [_COMPILER, "example.c", "-o", "example", "-L.", "-lmodel", "-Wl,-rpath,."]
        subprocess.run(build, cwd=folder, check=True)
        given = [f"in{number}" for number in range(len(inputs))]
        for name, value in zip(given, tuned.model.inputs, strict=True):
            inputs[value.name].tofile(folder / name)
        got = [f"out{number}" for number in range(len(like))]
        command = [_EMULATOR, "-L", _LIBRARIES, "./example", *given, *got]
        subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
        return [
            np.fromfile(folder / name, array.dtype).reshape(array.shape) for name, array in zip(got, like, strict=True)
        ]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
