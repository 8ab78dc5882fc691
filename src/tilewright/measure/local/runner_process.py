"""What goes on in the runner process: it loads one kernel after the other, times it and looks at its output."""

from __future__ import annotations

import functools
import statistics
import traceback
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import TilewrightError
from tilewright.measure.local.cold import ColdArrays
from tilewright.measure.local.messages import Ran, Ready, RunFailed, RunJob, Setup, SetupFailed
from tilewright.measure.local.reference import ReferenceStore, reference_outputs
from tilewright.measure.local.repeats import sample_latency, sample_turn
from tilewright.runtime import Kernel, Nearness
from tilewright.runtime.build import load_binary
from tilewright.te import Expected, Tensor, numpy_dtype, random_inputs

# As a float of any width it is NaN, and it is no value that kernels often compute as an integer.
_GARBAGE = 0xFF


def serve(connection: Connection, setup: Setup, store: ReferenceStore) -> None:
    """Answer each `RunJob` with `Ran` or `RunFailed`, until the other end closes."""
    try:
        bench = Bench(setup, store)
    except TilewrightError as error:
        connection.send(SetupFailed(str(error)))
        return
    except Exception:
        connection.send(SetupFailed(traceback.format_exc()))
        raise
    connection.send(Ready())
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        _answer(connection, bench, job)


def _answer(connection: Connection, bench: Bench, job: RunJob) -> None:
    try:
        answer = bench.run(job)
    except TilewrightError as error:
        connection.send(RunFailed(str(error)))
    except Exception:
        connection.send(RunFailed(traceback.format_exc()))  # such as no memory
        raise
    else:
        connection.send(answer)


class Bench:
    """The arrays that every candidate runs on, and the output that it must give."""

    def __init__(self, setup: Setup, store: ReferenceStore) -> None:
        self._setup = setup
        task = setup.task
        drawn = self._drawn()
        self._inputs = {tensor.name: array for tensor, array in zip(task.inputs, drawn, strict=True)}
        self._constants = {t.name: self._inputs[t.name] for t in task.constants}
        if not store.is_filled():
            store.save(reference_outputs(task, drawn, setup.target, setup.threads))
        self._expected = Expected(task, self._drawn, store.load())
        self._right: list[NDArray[Any]] = []
        self._nearness = Nearness(setup.threads)
        self._cold = ColdArrays(setup.context, setup.target)
        outputs = {t.name: _new_array(t) for t in task.outputs}
        given = {t.name: self._inputs[t.name] for t in task.inputs if not t.is_constant}
        self._copies = self._cold.activations(given, outputs)
        if self._copies is not None:
            self._inputs |= {name: self._copies.first[name] for name in given}
            outputs = {name: self._copies.first[name] for name in outputs}
        self._outputs = tuple(outputs.values())

    def _drawn(self) -> list[NDArray[Any]]:
        return random_inputs(self._setup.task, np.random.default_rng(self._setup.options.seed))

    def run(self, job: RunJob) -> Ran:
        options = self._setup.options
        kernel = load_binary(job.binary, self._setup.task, self._setup.threads)
        if self._constants:
            kernel = self._cold.constants(kernel.bind(**self._constants))
        for output in self._outputs:
            _bytes(output)[...] = _GARBAGE
        run = functools.partial(self._nearness.undisturbed, functools.partial(self._time, kernel))
        runs_s = sample_turn(run, options) if job.is_turn else sample_latency(run, options, job.best_latency_s)
        if not self._could_win(statistics.median(runs_s), job.best_latency_s):
            return Ran(runs_s)
        return Ran(runs_s, self._mismatch(job.error_growth))

    def _time(self, kernel: Kernel, number: int) -> float:
        inputs = [self._inputs[argument.name] for argument in kernel.inputs]
        return kernel.time(*inputs, number=number, out=self._outputs, copies=self._copies)

    def _could_win(self, latency_s: float, best_latency_s: float | None) -> bool:
        return best_latency_s is None or latency_s < self._setup.options.contender_factor * best_latency_s

    def _mismatch(self, error_growth: float) -> str:
        # Many schedules add up in the same order and give the very bits of the one before: that is quickly seen.
        if self._right and all(map(_same_bits, self._outputs, self._right)):
            return ""
        wrong = self._expected.mismatch(self._outputs, error_growth)
        if not wrong:
            self._right = [output.copy() for output in self._outputs]
        return wrong


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _same_bits(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return np.array_equal(_bytes(a), _bytes(b))


def _new_array(tensor: Tensor) -> NDArray[Any]:
    """Memory as callers have it: NumPy's, not that of the runtime, whose huge pages would flatter some candidates."""
    return np.empty(tensor.shape, numpy_dtype(tensor.dtype))
