"""Which of the fastest programs of each task is the fastest one inside the network.

Alone, programs that are a few percent apart change places from one process to the next, and none finds its data quite
where the network leaves it. So the network is compiled with the best programs of all tasks, with the second ones, and
so on; these run in turns, and each call of a kernel is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tilewright.deploy.compiled import CompiledModel, NativeStep
from tilewright.errors import TilewrightError
from tilewright.records import Record, RecordedPrograms
from tilewright.runtime import Nearness
from tilewright.schedule import Trace

NUM_FINALISTS = 4
CLOSE = 1.08
"""A finalist is within this factor of the best of its task."""
# A smaller gain is noise, and the program that was the best alone stays.
_CLEARLY_FASTER = 0.99
_MIN_ROUNDS, _MAX_ROUNDS = 5, 40
_RUNS_OF_A_TURN = 3

Profile = Callable[[], Sequence[float]]
"""Runs a network once; the seconds of each call of a kernel, in their order."""


def settle(
    programs: Mapping[str, RecordedPrograms],
    kernels: Sequence[str],
    compile_with: Callable[[Mapping[str, Trace]], CompiledModel],
    profile_of: Callable[[CompiledModel], Profile],
    budget_s: float,
) -> dict[str, list[Record]]:
    """The finalists of each task that has several, the fastest inside the network first.

    `programs` and the result are by the hashes of the tasks; `kernels` has the task of each kernel. A record is ranked
    by what its program took beside the others: the first has the rank of the task's best, the others follow. Variants
    of the network are run in turns for about `budget_s` seconds.
    """
    finalists = {task: found.close(NUM_FINALISTS, CLOSE) for task, found in programs.items()}
    num_variants = max(map(len, finalists.values()), default=0)
    models: list[CompiledModel] = []
    for place in range(num_variants if num_variants > 1 else 0):
        choice = {task: found[min(place, len(found) - 1)].trace for task, found in finalists.items() if found}
        try:
            models.append(compile_with(choice))
        except TilewrightError:
            break  # of a program from elsewhere; those before it are compared
    if len(models) < 2:
        return {}
    times_s = _kernel_times(models, len(kernels), profile_of, budget_s)
    return {
        task: _ranked(finalists[task], times_s[: len(finalists[task]), kernel])
        for kernel, task in enumerate(kernels)
        if len(finalists.get(task, ())) > 1
    }


def _kernel_times(
    models: Sequence[CompiledModel],
    num_kernels: int,
    profile_of: Callable[[CompiledModel], Profile],
    budget_s: float,
) -> NDArray[np.float64]:
    """[model, kernel]: the seconds that all calls of a kernel take in a run, the median over the turns."""
    profiles = [profile_of(model) for model in models]
    kernels = [call.kernel for step in models[0].steps if isinstance(step, NativeStep) for call in step.calls]
    samples: list[list[Sequence[float]]] = [[] for _ in models]
    nearness = Nearness(models[0].threads)
    start_s = time.perf_counter()
    for number in range(_MAX_ROUNDS):
        if number >= _MIN_ROUNDS and time.perf_counter() - start_s > budget_s:
            break
        for own, profile in zip(samples, profiles, strict=True):
            nearness.rest()
            profile()  # the caches are those of another variant
            own += [profile() for _ in range(_RUNS_OF_A_TURN)]
    calls_s = np.median(np.asarray(samples, np.float64), axis=1)
    is_of_kernel = np.asarray(kernels)[:, np.newaxis] == np.arange(num_kernels)
    times_s: NDArray[np.float64] = calls_s @ is_of_kernel
    return times_s


def _ranked(finalists: Sequence[Record], times_s: NDArray[np.float64]) -> list[Record]:
    """Best first. The best one alone stays it unless another is clearly faster."""
    compared = finalists[: len(times_s)]
    fastest = int(np.argmin(times_s))
    if times_s[fastest] > _CLEARLY_FASTER * times_s[0]:
        fastest = 0
    ratios = np.maximum(times_s / times_s[fastest], 1.0)
    ranked = [
        replace(record, compared_s=float(finalists[0].rank_s * ratio))
        for record, ratio in zip(compared, ratios, strict=True)
    ]
    return [ranked[fastest], *(record for place, record in enumerate(ranked) if place != fastest)]
