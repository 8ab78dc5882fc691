"""A good program at once: the best of a small search under the analytical model, with nothing measured."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tilewright.codegen import Target
from tilewright.cost_model.analytical import score_schedule
from tilewright.features import Hardware
from tilewright.records import Record, best
from tilewright.schedule import Trace
from tilewright.search import EvolutionarySearch
from tilewright.space import Sketch, SpaceOptions, derive
from tilewright.space.knob import IntArray
from tilewright.task import Task

# Most of the time goes into each pass over a sketch, little into its rows: all sketches are looked at once, and only
# the most promising ones evolve.
_ROWS_OF_A_SKETCH = 128
_NUM_PROMISING = 2
_POPULATION = 512
_GENERATIONS = 3


def default_trace(task: Task, target: Target, threads: int, seed: int = 0) -> Trace:
    """A program for a task that was never tuned. The same arguments give the same program.

    A task that has no program in the space, such as one whose every candidate is too large for the target, gets its
    loops as they are written.
    """
    hardware = Hardware.from_target(target, threads)

    def scores(sketch: Sketch, rows: IntArray) -> npt.NDArray[np.float64]:
        return score_schedule(sketch.population(rows), len(rows), hardware)

    sketches = derive(task, SpaceOptions(target, threads))
    look = EvolutionarySearch(sketches, scores, target, seed)
    firsts = [_best_score(look, sketch) for sketch in sketches]
    order = np.argsort(firsts, kind="stable")[::-1][:_NUM_PROMISING]
    promising = [sketches[position] for position in order if firsts[position] > -np.inf]
    if not promising:
        return Trace()
    search = EvolutionarySearch(
        promising, scores, target, seed, population=_POPULATION, generations=_GENERATIONS, random_share=0.0
    )
    return search.ask(1)[0].trace


def best_trace(records: Iterable[Record], task: Task, target: Target, threads: int) -> Trace:
    """The fastest recorded program of a task, or the default where none is recorded."""
    found = best(records, task.hash, str(target), threads)
    return default_trace(task, target, threads) if found is None else found.trace


def _best_score(search: EvolutionarySearch, sketch: Sketch) -> float:
    rows = search.random_rows(sketch, _ROWS_OF_A_SKETCH)
    return float(search.scorer(sketch, rows).max()) if len(rows) else -np.inf
