"""Measures the numbers of a core: small programs, each bound by one part of it, and the best of many short runs.

Each program has a schedule that leaves the compiler no choice. A run lasts about a millisecond, so that some runs of
each fall between whatever else the machine does, and the fastest of them tells what the core can do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tilewright import te
from tilewright.runtime import measure_loop, parallel_region_s
from tilewright.runtime.aligned_arrays import aligned_empty
from tilewright.runtime.build import build
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.te import Task, numpy_dtype

_RUN_MS = 1.0
_LEAST_ROUNDS = 5
_DIGITS = 3
_CHAIN = 2048  # steps that wait for each other; with their operands they fit any first cache
_UNROLLED = 16
_ACCUMULATORS = 8  # vectors; enough that additions never wait for each other
_MEMORY_BYTES = (64 << 20, 1 << 30)  # what is read to measure memory, at least and at most
_PIECE_S = 5e-6  # of the work that threads share to measure a parallel region


@dataclass(frozen=True, slots=True)
class Probe:
    """A program that is bound by one part of the core. `amount` is what it does of that in one run, on each thread."""

    schedule: Schedule
    amount: float
    threads: int = 1


def calibrate(target: Target, threads: int, seconds: float = 3.0) -> dict[str, float]:
    """The numbers of a core of this machine, by the names that they have in `CoreModel`.

    Of those in `MEASURED`, all that the machine has: none of caches that do not exist, nor of parallel regions on one
    thread.
    """
    probes = make_probes(target, threads)
    best_s = _best_times(target, probes, threads, seconds)
    return {name: _rounded(value) for name, value in numbers_of(probes, best_s, threads).items()}


def numbers_of(probes: Mapping[str, Probe], best_s: Mapping[str, float], threads: int) -> dict[str, float]:
    """The numbers that follow from the time of one run of each probe, and of an empty parallel region (`region`)."""
    per_second = {name: probe.amount / best_s[name] for name, probe in probes.items()}
    # An addition of integers that waits for the one before takes one cycle on every processor that we know of.
    clock_hz = per_second["additions"]
    numbers = {"clock_hz": clock_hz, "mad_latency": clock_hz / per_second["mads_in_a_chain"]}
    for name, probe in (
        ("arithmetic_per_cycle", "mads"),
        ("loads_per_cycle", "loads"),
        ("stores_per_cycle", "stores"),
        ("l2_bytes_per_cycle", "l2"),
        ("l3_bytes_per_cycle", "l3"),
        ("memory_bytes_per_cycle", "memory"),
    ):
        if probe in per_second:
            numbers[name] = per_second[probe] / clock_hz
    if threads > 1:
        # What sharing work costs beside the work; never less than to offer it.
        region_s = max(best_s["shared"] - best_s["alone"], best_s["region"])
        numbers["region_cycles"] = region_s * clock_hz
    return numbers


def make_probes(target: Target, threads: int) -> dict[str, Probe]:
    """The programs for a target, on up to so many threads."""
    vector_bytes = target.vector_bytes
    probes = {
        "additions": Probe(_chain_of_additions(), _CHAIN),
        "mads_in_a_chain": Probe(_chain_of_mads(), _CHAIN),
        "mads": _tile(target),
        "loads": _reading(target, target.l1_bytes // 2, repeats=16, unit_bytes=vector_bytes),
        "stores": _writing(target, target.l1_bytes // 2),
    }
    if target.l2_bytes > target.l1_bytes:
        probes["l2"] = _reading(target, target.l2_bytes // 2, repeats=4)
    last_bytes = max(target.l1_bytes, target.l2_bytes)
    if target.l3_bytes > last_bytes:
        # So few threads that what each reads is more than its own caches hold.
        sharing = max(1, min(threads, target.l3_bytes // (4 * last_bytes)))
        probes["l3"] = _reading(target, target.l3_bytes // (2 * sharing), sharing)
    least, most = _MEMORY_BYTES
    probes["memory"] = _reading(target, min(max(2 * max(target.caches[:3]), least), most) // threads, threads)
    if threads > 1:
        cycles = _PIECE_S * target.core.clock_hz
        repeats = max(1, round(cycles * vector_bytes * target.core.loads_per_cycle / (target.l1_bytes // 2)))
        probes["alone"] = _reading(target, target.l1_bytes // 2, 1, repeats)
        probes["shared"] = _reading(target, target.l1_bytes // 2, threads, repeats)
    return probes


def _chain_of_additions() -> Schedule:
    """A sum of integers, one after the other."""
    x, k = te.placeholder((_CHAIN,), name="x", dtype="int32"), te.reduce_axis(_CHAIN, name="k")
    schedule = Schedule(Task([x], te.compute((1,), lambda i: te.sum(x[k], axis=k), name="y")))
    schedule["y"].unroll(schedule["y"].split("k", _UNROLLED)[1])
    return schedule


def _chain_of_mads() -> Schedule:
    """A sum of products, one after the other."""
    a, b = te.placeholder((_CHAIN,), name="a"), te.placeholder((_CHAIN,), name="b")
    k = te.reduce_axis(_CHAIN, name="k")
    schedule = Schedule(Task([a, b], te.compute((1,), lambda i: te.sum(a[k] * b[k], axis=k), name="y")))
    schedule["y"].unroll(schedule["y"].split("k", _UNROLLED)[1])
    return schedule


def _tile(target: Target) -> Probe:
    """A matrix product that fits the first cache, in a register tile of two vectors by as many rows as there can be."""
    lanes, repeats, rows = target.lanes("float32"), 16, (target.num_vector_registers - 4) // 2
    size = target.l1_bytes // 2 // (4 * rows + 2 * target.vector_bytes)
    a, b = te.placeholder((rows, size), name="a"), te.placeholder((size, 2 * lanes), name="b")
    k = te.reduce_axis(size, name="k")
    y = te.compute((repeats, rows, 2 * lanes), lambda r, i, j: te.sum(a[i, k] * b[k, j], axis=k), name="y")
    schedule = Schedule(Task([a, b], y))
    schedule["y"].reorder("r", "k", "i", "j")
    schedule["y"].unroll("i")
    schedule["y"].vectorize("j")
    instructions = 1.0 if target.has_fma else target.core.unfused_units
    return Probe(schedule, repeats * size * rows * 2 * instructions)


def _reading(target: Target, num_bytes: int, threads: int = 1, repeats: int = 1, unit_bytes: int = 1) -> Probe:
    """Each thread reads that many bytes of its own, again and again, in whole vectors."""
    lanes = target.lanes("int32")
    width = _ACCUMULATORS * lanes
    steps = max(1, num_bytes // (4 * width))
    x, k = te.placeholder((threads, steps, width), name="x", dtype="int32"), te.reduce_axis(steps, name="k")
    y = te.compute((threads, repeats, width), lambda t, r, j: te.sum(x[t, k, j], axis=k), name="y")
    schedule = Schedule(Task([x], y))
    j0, j1 = schedule["y"].split("j", lanes)
    schedule["y"].reorder("t", "r", "k", j0, j1)
    schedule["y"].unroll(j0)
    schedule["y"].vectorize(j1)
    if threads > 1:
        schedule["y"].parallel("t")
    return Probe(schedule, steps * width * 4 * repeats / unit_bytes, threads)


def _writing(target: Target, num_bytes: int) -> Probe:
    """One number to that many bytes, in whole vectors."""
    lanes = target.lanes("int32")
    steps = max(1, num_bytes // (4 * _ACCUMULATORS * lanes))
    x = te.placeholder((1,), name="x", dtype="int32")
    schedule = Schedule(Task([x], te.compute((steps, _ACCUMULATORS, lanes), lambda k, i, j: x[0], name="y")))
    schedule["y"].unroll("i")
    schedule["y"].vectorize("j")
    return Probe(schedule, steps * _ACCUMULATORS)


def _best_times(target: Target, probes: Mapping[str, Probe], threads: int, seconds: float) -> dict[str, float]:
    """The time of one run of each probe, and of an empty parallel region: the best of rounds through all of them."""
    runs = {name: _runner(target, probe) for name, probe in probes.items()}
    runs["region"] = lambda: parallel_region_s(threads, number=200)
    best_s = dict.fromkeys(runs, math.inf)
    started_s = time.monotonic()
    num_rounds = 0
    while num_rounds < _LEAST_ROUNDS or time.monotonic() - started_s < seconds:
        for name, run in runs.items():
            best_s[name] = min(best_s[name], run())
        num_rounds += 1
    return best_s


def _runner(target: Target, probe: Probe) -> Callable[[], float]:
    """A function that gives the seconds of one run, from as many as take about a millisecond."""
    kernel = build(probe.schedule, target, probe.threads)
    arrays = [aligned_empty(a.shape, numpy_dtype(a.dtype), a.nbytes) for a in (*kernel.inputs, *kernel.outputs)]
    for array in arrays:
        array.fill(np.ones((), array.dtype))
    inputs, outputs = arrays[: len(kernel.inputs)], tuple(arrays[len(kernel.inputs) :])

    def loop(number: int) -> float:
        return kernel.time(*inputs, number=number, out=outputs)

    number = measure_loop(loop, repeats=1, min_repeat_ms=_RUN_MS).number
    return lambda: loop(number) / number


def _rounded(value: float) -> float:
    """As exact as it is measured, so that the string of a target stays short."""
    return float(f"{value:.{_DIGITS}g}")
