"""A good program at once, with nothing measured.

The analytical model drafts, in a small search of the most promising sketch. The model that ships, which has learned,
goes on from the drafts of all sketches, in those that it prefers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.cost_model import AnalyticalModel, CostModel, shipped
from tilewright.cost_model.analytical import score_schedule
from tilewright.features import Hardware
from tilewright.records import WARM, Record, find_programs, for_target, group_by_task
from tilewright.schedule import Schedule, Trace
from tilewright.search.base import Scorer
from tilewright.search.operators import mutate
from tilewright.space import Population, Sketch, SpaceOptions, derive, plain_schedule
from tilewright.target import Target
from tilewright.te import Task

# Most of the time goes into each pass over a sketch, little into its rows: every sketch is looked at once by either
# model, and only the most promising ones are searched.
_NUM_ROWS = 128
_GENERATIONS = 5
_NUM_PARENTS = 24
_NUM_CHILDREN = 192
# So many sketches are searched by the model that has learned, and for so many generations.
_NUM_PREFERRED = 2
_LAST_GENERATIONS = 4
# A program that takes less is not searched any further: it could gain less than that takes.
_WORTH_S = 5e-6
# Scores that differ by less are equal: rounding, which differs between processors, must not decide.
_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class Untuned:
    """A program, and how long the analytical model expects it to take."""

    trace: Trace
    estimate_s: float


def default_trace(task: Task, target: Target, threads: int, seed: int = 0, exact: bool = False) -> Trace:
    """A program for a task that was never tuned. The same arguments give the same program.

    Unless it must be `exact`, it may use an algorithm that rounds more than sums do, such as Winograd's.

    >>> import tilewright as tw
    >>> from tilewright import te
    >>> A = te.placeholder((256, 256), name="A")
    >>> task = tw.Task([A], [te.compute((256, 256), lambda i, j: A[i, j] * 2.0, name="B")])
    >>> print(default_trace(task, tw.Target.parse("llvm -mcpu=haswell"), threads=2))
    s = tw.Schedule(task)
    s["B"].vectorize("j")
    s["B"].parallel("i")
    """
    return search_untuned(derive(task, SpaceOptions(target, threads, exact=exact)), seed).trace


def search_untuned(sketches: Sequence[Sketch], seed: int = 0, model: CostModel | None = None) -> Untuned:
    """The best of the sketches, which are those of one task; the plain program where nothing fits the target.

    It is the best by the `model`, in a search that begins with drafts of the analytical model; by the one that ships,
    if none is given.
    """
    rng = np.random.default_rng(seed)
    options = sketches[0].options
    pools = [_BestOfSketch(sketch, _analytical) for sketch in sketches]
    for pool in pools:
        pool.add(_some(pool.population.sketch, rng))
    # The one that is searched comes first: of equal ones it has the analytical model's choice.
    pools.sort(key=lambda pool: -pool.best_score)
    if pools[0].best_score == -np.inf:
        plain = plain_schedule(sketches[0].task, options.target, options.threads)
        return Untuned(Trace(plain.steps), _expected_s(plain, options))
    for _ in range(_GENERATIONS):
        pools[0].evolve(rng)
    is_worth_it = np.exp(-pools[0].best_score) >= _WORTH_S * options.target.core.clock_hz
    if is_worth_it and not isinstance(model, AnalyticalModel):
        pools = _preferred(pools, model or shipped(), rng)
    best = pools[0].population[:1]
    return Untuned(best.trace(0), _expected_s(best.schedule, options))


def _preferred(drafts: Sequence[_BestOfSketch], model: CostModel, rng: np.random.Generator) -> list[_BestOfSketch]:
    """The sketches that the model prefers, best first, with the best of a search that begins with the drafts."""

    def score(population: Population) -> npt.NDArray[np.float64]:
        return np.round(model.predict(population), _DECIMALS)

    pools = []
    for draft in drafts:
        legal = draft.population[np.isfinite(draft.scores)]
        if len(legal):
            pools.append(_BestOfSketch(legal.sketch, score))
            pools[-1].add(legal)
    pools.sort(key=lambda pool: -pool.best_score)
    searched = pools[:_NUM_PREFERRED]
    for _ in range(_LAST_GENERATIONS):
        for pool in searched:
            pool.evolve(rng)
    return sorted(searched, key=lambda pool: -pool.best_score)


def _analytical(population: Population) -> npt.NDArray[np.float64]:
    options = population.sketch.options
    hardware = Hardware.from_target(options.target, options.threads)
    return score_schedule(population.schedule, len(population), hardware)


def _expected_s(schedule: Schedule, options: SpaceOptions) -> float:
    """By the analytical model."""
    score = score_schedule(schedule, 1, Hardware.from_target(options.target, options.threads))[0]
    return float(np.exp(-score)) / options.target.core.clock_hz


def best_trace(
    records: Iterable[Record], task: Task, target: Target, threads: int, context: str = WARM, exact: bool = False
) -> Trace:
    """The fastest recorded program of a task, in `context` if any was, or the default where none is recorded."""
    groups = group_by_task(record for record in for_target(records, target) if record.trace.is_exact or not exact)
    found = find_programs(task, groups, target, threads, context).best
    return default_trace(task, target, threads, exact=exact) if found is None else found.trace


def _some(sketch: Sketch, rng: np.random.Generator) -> Population:
    """Random candidates, half of them plain."""
    half = min(_NUM_ROWS, 4 * sketch.cardinality) // 2
    return Population.concatenate([sketch.sample(rng, half), sketch.sample_plain(rng, half)])


class _BestOfSketch:
    """The best candidates of a sketch that were found so far, best first, by some scores of populations."""

    def __init__(self, sketch: Sketch, score: Scorer) -> None:
        self.target = sketch.options.target
        self.score = score
        self.population = Population(sketch, np.zeros((0, len(sketch.knobs)), np.int64))
        self.scores: npt.NDArray[np.float64] = np.zeros(0)

    @property
    def best_score(self) -> float:
        return float(self.scores[0])

    def add(self, population: Population) -> None:
        scores = self.score(population)
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
