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
from tilewright.te import Task, assert_matches, numpy_dtype, random_inputs, reduction_size

_MAIN = Path(__file__).with_name("emulated_main.c")
_HEADERS = Path(runtime.__file__).parent / "native"
_GARBAGE = 0xFF  # an element that was not written is a NaN
_LAST_WORDS = 2000

Array = NDArray[Any]


class EmulatedRunner:
    """A `Runner` whose kernels run in a process of an emulator each, single-threaded."""

    def __init__(self, emulator: str, target: Target, threads: int, options: MeasureOptions) -> None:
        self._emulator = _found(emulator)
        self._compiler = _found(f"{target.arch}-linux-gnu-gcc")
        self._threads = threads
        self._options = options
        self._task: Task | None = None
        self._inputs: list[Array] = []
        self._expected: list[Array] = []

    def prepare(self, task: Task, context: Context) -> None:
        """Draw the inputs and compute the outputs, on this machine."""
        if task is self._task:
            return
        self._inputs = random_inputs(task, np.random.default_rng(self._options.seed))
        self._expected = reference_outputs(task, self._inputs, Target.native(), self._threads)
        self._task = task

    def run(self, built: Built, best_latency_s: float | None) -> Measurement:
        return self._measure(built, self._options.min_repeats)

    def take_turn(self, built: Built) -> Measurement:
        return self._measure(built, 1)

    def reset(self) -> None:
        """Nothing is left of a kernel that ran."""

    def _measure(self, built: Built, repeats: int) -> Measurement:
        try:
            with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
                outputs, runs_s = self._emulate(built, Path(folder), repeats)
        except _FailedError as error:
            return Measurement(RUN_ERROR, error=str(error), build_s=built.build_s)
        except subprocess.TimeoutExpired:
            error_text = f"running took longer than {self._options.run_timeout_s:.3g} s (see run_timeout_s)"
            return Measurement(RUN_TIMEOUT, error=error_text, build_s=built.build_s)
        mismatch = self._mismatch(outputs, built.error_growth)
        if mismatch:
            return Measurement(WRONG_RESULT, runs_s=runs_s, error=mismatch, build_s=built.build_s)
        return Measurement(OK, statistics.median(runs_s), runs_s, build_s=built.build_s)

    def _emulate(self, built: Built, folder: Path, repeats: int) -> tuple[list[Array], tuple[float, ...]]:
        """The outputs of the kernel after its constants were packed, and the seconds of each repeat."""
        assert self._task is not None, "the runner was prepared"
        for number, code in enumerate((built.binary.object_code, *built.binary.parts)):
            (folder / f"kernel{number}.o").write_bytes(code)
        arguments = list(self._inputs)
        for pack in built.binary.packs:
            blank = _blank(pack.shape, pack.dtype)
            contents, _ = self._call(folder, pack.entry, [self._inputs[pack.position], blank], 0)
            arguments[pack.position] = contents[1]
        outputs = [_blank(tensor.shape, tensor.dtype) for tensor in self._task.outputs]
        contents, runs_s = self._call(folder, built.binary.entry, [*arguments, *outputs], repeats)
        return contents[len(arguments) :], runs_s

    def _call(
        self, folder: Path, entry: Entry, arguments: Sequence[Array], repeats: int
    ) -> tuple[list[Array], tuple[float, ...]]:
        """Call a function of the kernel; all its arguments afterwards, and the seconds of each repeat."""
        program, given, got = folder / f"program-{entry.symbol}", folder / "input", folder / "output"
        given.write_bytes(_packed(entry, arguments))
        self._run(self._compiler, "-O1", "-static", f"-DKERNEL={entry.symbol}", f"-I{_HEADERS}", "-o", str(program),
                  str(_MAIN), *map(str, folder.glob("kernel*.o")))  # fmt: skip
        said = self._run(self._emulator, str(program), str(given), str(got), str(repeats))
        data, offset = got.read_bytes(), 0
        contents: list[Array] = []
        for array in arguments:
            count = array.size
            contents.append(np.frombuffer(data, array.dtype, count, offset).reshape(array.shape))
            offset += array.nbytes
        return contents, tuple(float(line) for line in said.split())

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=self._options.run_timeout_s, check=False, errors="replace"
        )
        if done.returncode != 0:
            program = Path(command[0]).name
            raise _FailedError(f"{program} ended with {done.returncode}: {done.stderr[-_LAST_WORDS:]}")
        return done.stdout

    def _mismatch(self, outputs: Sequence[Array], error_growth: float) -> str:
        assert self._task is not None, "the runner was prepared"
        for tensor, actual, expected in zip(self._task.outputs, outputs, self._expected, strict=True):
            try:
                assert_matches(actual, expected, tensor.dtype, reduction_size(self._task), error_growth)
            except AssertionError as error:
                return f"output {tensor.name}: {error}"
        return ""


class _FailedError(Exception):
    """The kernel did not end well."""


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise TilewrightError(
            f"{program} is not installed here; on Debian: apt-get install qemu-user gcc-aarch64-linux-gnu"
        )
    return path


def _blank(shape: tuple[int, ...], dtype: str) -> Array:
    array: Array = np.empty(shape, numpy_dtype(dtype))
    array.reshape(-1).view(np.uint8)[...] = _GARBAGE
    return array


def _packed(entry: Entry, arguments: Sequence[Array]) -> bytes:
    parts = [np.array([len(arguments), entry.workspace_bytes, entry.scratch_bytes], np.int64).tobytes()]
    for array in arguments:
        parts += [np.int64(array.nbytes).tobytes(), np.ascontiguousarray(array).tobytes()]
    return b"".join(parts)
