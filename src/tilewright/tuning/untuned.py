"""A good program at once: the best of a small search under the analytical model, with nothing measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.cost_model.analytical import score_schedule
from tilewright.features import Hardware
from tilewright.records import WARM, Record, find_programs, for_target, group_by_task
from tilewright.schedule import Trace
from tilewright.search.operators import mutate
from tilewright.space import Population, Sketch, SpaceOptions, derive, plain_schedule
from tilewright.target import Target
from tilewright.te import Task

# Most of the time goes into each pass over a sketch, little into its rows: every sketch is looked at once, and only
# the most promising one is searched.
_NUM_ROWS = 128
_GENERATIONS = 5
_NUM_PARENTS = 24
_NUM_CHILDREN = 192


@dataclass(frozen=True, slots=True)
class Untuned:
    """The best program by the analytical model, and how long that expects it to take."""

    trace: Trace
    estimate_s: float


def default_trace(task: Task, target: Target, threads: int, seed: int = 0) -> Trace:
    """A program for a task that was never tuned. The same arguments give the same program.

    >>> import tilewright as tw
    >>> from tilewright import te
    >>> A = te.placeholder((256, 256), name="A")
    >>> task = tw.Task([A], [te.compute((256, 256), lambda i, j: A[i, j] * 2.0, name="B")])
    >>> print(default_trace(task, tw.Target.parse("llvm -mcpu=haswell"), threads=2))
    s = tw.Schedule(task)
    s["B"].vectorize("j")
    s["B"].parallel("i")
    """
    return search_untuned(derive(task, SpaceOptions(target, threads)), seed).trace


def search_untuned(sketches: Sequence[Sketch], seed: int = 0) -> Untuned:
    """The best of the sketches, which are those of one task; the plain program where nothing fits the target."""
    rng = np.random.default_rng(seed)
    options = sketches[0].options
    pool = _most_promising(sketches, rng)
    if pool.best_score == -np.inf:
        plain = plain_schedule(sketches[0].task, options.target, options.threads)
        score = score_schedule(plain, 1, Hardware.from_target(options.target, options.threads))[0]
        return Untuned(Trace(plain.steps), _seconds(score, options.target))
    for _ in range(_GENERATIONS):
        pool.evolve(rng)
    return Untuned(pool.population.trace(0), _seconds(pool.best_score, options.target))


def _seconds(score: float, target: Target) -> float:
    return float(np.exp(-score)) / target.core.clock_hz


def best_trace(records: Iterable[Record], task: Task, target: Target, threads: int, context: str = WARM) -> Trace:
    """The fastest recorded program of a task, in `context` if any was, or the default where none is recorded."""
    groups = group_by_task(for_target(records, target))
    found = find_programs(task, groups, target, threads, context).best
    return default_trace(task, target, threads) if found is None else found.trace


def _most_promising(sketches: Sequence[Sketch], rng: np.random.Generator) -> _BestOfSketch:
    """The sketch whose random candidates have the best score."""
    pools = [_BestOfSketch(sketch) for sketch in sketches]
    for pool in pools:
        sketch = pool.population.sketch
        half = min(_NUM_ROWS, 4 * sketch.cardinality) // 2
        pool.add(Population.concatenate([sketch.sample(rng, half), sketch.sample_plain(rng, half)]))
    return max(pools, key=lambda pool: pool.best_score)


class _BestOfSketch:
    """The best candidates of a sketch that were found so far, best first."""

    def __init__(self, sketch: Sketch) -> None:
        self.target = sketch.options.target
        self.hardware = Hardware.from_target(self.target, sketch.options.threads)
        self.population = Population(sketch, np.zeros((0, len(sketch.knobs)), np.int64))
        self.scores: npt.NDArray[np.float64] = np.zeros(0)

    @property
    def best_score(self) -> float:
        return float(self.scores[0])

    def add(self, population: Population) -> None:
        scores = score_schedule(population.schedule, len(population), self.hardware)
        scores[~population.legal(self.target)] = -np.inf
        merged = Population.concatenate([self.population, population])
        merged_scores = np.concatenate([self.scores, scores])
        _, first = np.unique(merged.rows, axis=0, return_index=True)
        order = first[np.argsort(-merged_scores[first], kind="stable")][:_NUM_PARENTS]
        self.population, self.scores = merged[order], merged_scores[order]

    def evolve(self, rng: np.random.Generator) -> None:
        """One generation: mutants of the best candidates."""
        if self.population.sketch.cardinality <= _NUM_ROWS:
            return
        parents = self.population[np.arange(_NUM_CHILDREN) % len(self.population)]
        self.add(mutate(rng, parents))
