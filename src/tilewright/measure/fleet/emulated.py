"""`EmulatedRunner`: runs code of another architecture in an emulator such as qemu-aarch64.

Its times say how long the emulator takes, which is little about the machine; its answers are checked as everywhere.
Each kernel is linked with a small C program by the cross compiler of the architecture.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright import runtime
from tilewright.codegen.module import Entry
from tilewright.errors import TilewrightError
from tilewright.measure.context import Context
from tilewright.measure.local.reference import reference_outputs
from tilewright.measure.measurement import OK, RUN_ERROR, RUN_TIMEOUT, WRONG_RESULT, Measurement
from tilewright.measure.options import MeasureOptions
from tilewright.measure.protocols import Built
from tilewright.target import Target
from tilewright.te import Expected, Task, numpy_dtype, random_inputs

_MAIN = Path(__file__).with_name("emulated_main.c")
_HEADERS = Path(runtime.__file__).parent / "native"
_GARBAGE = 0xFF  # an element that was not written is a NaN
_LAST_WORDS = 2000
_LONG_S = 1.0  # a kernel that takes so long is called once: what an emulator translates at first is little beside it
_KEPT = 8  # kernels that are ready to run: those of a comparison have many turns

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Ready:
    """A kernel as a program, in a folder of its own, which also has its arguments with the constants packed."""

    built: Built
    folder: tempfile.TemporaryDirectory[str]
    arguments: list[Array]


class EmulatedRunner:
    """A `Runner` whose kernels run in a process of an emulator each, single-threaded."""

    def __init__(self, emulator: str, target: Target, threads: int, options: MeasureOptions) -> None:
        self._emulator = _found(emulator)
        self._compiler = _found(f"{target.arch}-linux-gnu-gcc")
        self._threads = threads
        self._options = options
        self._task: Task | None = None
        self._inputs: list[Array] = []
        self._expected: Expected | None = None
        self._ready: list[_Ready] = []  # the last used one at the end

    def prepare(self, task: Task, context: Context) -> None:
        """Draw the inputs and compute the outputs, on this machine."""
        if task is self._task:
            return
        self.reset()
        self._inputs = random_inputs(task, np.random.default_rng(self._options.seed))
        outputs = reference_outputs(task, self._inputs, Target.native(), self._threads)
        self._expected = Expected(task, lambda: self._inputs, outputs)
        self._task = task

    def run(self, built: Built, best_latency_s: float | None) -> Measurement:
        return self._measure(built, self._options.min_repeats, self._options.run_deadline_s(best_latency_s))

    def take_turn(self, built: Built) -> Measurement:
        return self._measure(built, 1, self._options.run_timeout_s)

    def reset(self) -> None:
        """Nothing is left of kernels that ran."""
        for ready in self._ready:
            ready.folder.cleanup()
        self._ready.clear()

    def _measure(self, built: Built, repeats: int, deadline_s: float) -> Measurement:
        try:
            ready = self._made_ready(built)
            outputs, runs_s = self._emulate(ready, repeats, deadline_s)
        except _FailedError as error:
            return Measurement(RUN_ERROR, error=str(error), build_s=built.build_s)
        except subprocess.TimeoutExpired as error:
            error_text = f"running took longer than {error.timeout:.3g} s (see run_timeout_s)"
            return Measurement(RUN_TIMEOUT, error=error_text, build_s=built.build_s)
        assert self._expected is not None, "the runner was prepared"
        mismatch = self._expected.mismatch(outputs, built.error_growth)
        if mismatch:
            return Measurement(WRONG_RESULT, runs_s=runs_s, error=mismatch, build_s=built.build_s)
        return Measurement(OK, statistics.median(runs_s), runs_s, build_s=built.build_s)

    def _made_ready(self, built: Built) -> _Ready:
        """Link the kernel and pack its constants, unless that was done lately."""
        known = next((ready for ready in self._ready if ready.built is built), None)
        if known is not None:
            self._ready.remove(known)
        ready = known or self._linked(built)
        self._ready.append(ready)
        while len(self._ready) > _KEPT:
            self._ready.pop(0).folder.cleanup()
        return ready

    def _linked(self, built: Built) -> _Ready:
        folder = tempfile.TemporaryDirectory(prefix="tilewright-")
        try:
            return _Ready(built, folder, self._linked_in(Path(folder.name), built))
        except BaseException:
            folder.cleanup()
            raise

    def _linked_in(self, folder: Path, built: Built) -> list[Array]:
        """The arguments of the kernel, for which the folder has all files then."""
        assert self._task is not None, "the runner was prepared"
        binary, arguments = built.binary, list(self._inputs)
        for number, code in enumerate((binary.object_code, *binary.parts)):
            (folder / f"kernel{number}.o").write_bytes(code)
        for pack in binary.packs:
            given = [self._inputs[pack.position], _blank(pack.shape, pack.dtype)]
            self._link(folder, pack.entry, given)
            contents, _ = self._call(folder, pack.entry, given, 0, self._options.run_timeout_s)
            arguments[pack.position] = contents[1]
        arguments += [_blank(tensor.shape, tensor.dtype) for tensor in self._task.outputs]
        self._link(folder, binary.entry, arguments)
        return arguments

    def _emulate(self, ready: _Ready, repeats: int, deadline_s: float) -> tuple[list[Array], tuple[float, ...]]:
        """The outputs of the kernel, and the seconds of each repeat, or of the only call of one that takes long."""
        entry, folder = ready.built.binary.entry, Path(ready.folder.name)
        contents, calls_s = self._call(folder, entry, ready.arguments, repeats, deadline_s)
        return contents[len(self._inputs) :], calls_s[1:] or calls_s

    def _link(self, folder: Path, entry: Entry, arguments: Sequence[Array]) -> None:
        """Make the program that calls a function of the kernel, and the file of its arguments."""
        (folder / "input").write_bytes(_packed(entry, arguments))
        flags = ("-O1", "-static", f"-DKERNEL={entry.symbol}", f"-I{_HEADERS}", "-o", str(_program(folder, entry)))
        timeout_s = self._options.build_timeout_s
        self._run(timeout_s, self._compiler, *flags, str(_MAIN), *map(str, folder.glob("kernel*.o")))

    def _call(
        self, folder: Path, entry: Entry, arguments: Sequence[Array], repeats: int, timeout_s: float
    ) -> tuple[list[Array], tuple[float, ...]]:
        """Call a function of the kernel; all its arguments after the first call, and the seconds of each."""
        given, got = folder / "input", folder / "output"
        limits = (str(repeats), str(_LONG_S))
        said = self._run(timeout_s, self._emulator, str(_program(folder, entry)), str(given), str(got), *limits)
        data, offset = got.read_bytes(), 0
        contents: list[Array] = []
        for array in arguments:
            count = array.size
            contents.append(np.frombuffer(data, array.dtype, count, offset).reshape(array.shape))
            offset += array.nbytes
        return contents, tuple(float(line) for line in said.split())

    def _run(self, timeout_s: float, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False, errors="replace")
        if done.returncode != 0:
            program = Path(command[0]).name
            raise _FailedError(f"{program} ended with {done.returncode}: {done.stderr[-_LAST_WORDS:]}")
        return done.stdout


class _FailedError(Exception):
    """The kernel did not end well."""


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise TilewrightError(
            f"{program} is not installed here; on Debian: apt-get install qemu-user gcc-aarch64-linux-gnu"
        )
    return path


def _program(folder: Path, entry: Entry) -> Path:
    return folder / f"program-{entry.symbol}"


def _blank(shape: tuple[int, ...], dtype: str) -> Array:
    array: Array = np.empty(shape, numpy_dtype(dtype))
    array.reshape(-1).view(np.uint8)[...] = _GARBAGE
    return array


def _packed(entry: Entry, arguments: Sequence[Array]) -> bytes:
    parts = [np.array([len(arguments), entry.workspace_bytes, entry.scratch_bytes], np.int64).tobytes()]
    for array in arguments:
        parts += [np.int64(array.nbytes).tobytes(), np.ascontiguousarray(array).tobytes()]
    return b"".join(parts)
