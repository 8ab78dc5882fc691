"""A good program at once: the best of a small search under the analytical model, with nothing measured.

The analytical model drafts; a model that has learned, if there is one, chooses among its drafts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.cost_model import CostModel
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
# Of each sketch so many are looked at by the model that chooses; of the one that is searched, all of its best.
_NUM_DRAFTS = 8
# Scores that differ by less are equal: rounding, which differs between processors, must not decide.
_DECIMALS = 4


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


def search_untuned(sketches: Sequence[Sketch], seed: int = 0, model: CostModel | None = None) -> Untuned:
    """The best of the sketches, which are those of one task; the plain program where nothing fits the target.

    With a `model`, which has learned, it is the one that this prefers among the drafts of the analytical model.
    """
    rng = np.random.default_rng(seed)
    options = sketches[0].options
    pools = _looked_at(sketches, rng)
    pool = max(pools, key=lambda pool: pool.best_score)
    if pool.best_score == -np.inf:
        plain = plain_schedule(sketches[0].task, options.target, options.threads)
        score = score_schedule(plain, 1, Hardware.from_target(options.target, options.threads))[0]
        return Untuned(Trace(plain.steps), _seconds(score, options.target))
    for _ in range(_GENERATIONS):
        pool.evolve(rng)
    if model is None:
        return Untuned(pool.population.trace(0), _seconds(pool.best_score, options.target))
    # The one that was searched comes first: of equal ones it has the analytical model's choice.
    drafts = [pool.drafts(_NUM_PARENTS), *(other.drafts(_NUM_DRAFTS) for other in pools if other is not pool)]
    return _preferred([draft for draft in drafts if len(draft.population)], model, options.target)


def _preferred(drafts: Sequence[_BestOfSketch], model: CostModel, target: Target) -> Untuned:
    scores = [np.round(model.predict(draft.population), _DECIMALS) for draft in drafts]
    best = max(range(len(drafts)), key=lambda number: scores[number].max())
    place = int(np.argmax(scores[best]))
    return Untuned(drafts[best].population.trace(place), _seconds(drafts[best].scores[place], target))


def _seconds(score: float, target: Target) -> float:
    return float(np.exp(-score)) / target.core.clock_hz


def best_trace(records: Iterable[Record], task: Task, target: Target, threads: int, context: str = WARM) -> Trace:
    """The fastest recorded program of a task, in `context` if any was, or the default where none is recorded."""
    groups = group_by_task(for_target(records, target))
    found = find_programs(task, groups, target, threads, context).best
    return default_trace(task, target, threads) if found is None else found.trace


def _looked_at(sketches: Sequence[Sketch], rng: np.random.Generator) -> list[_BestOfSketch]:
    """The best of some random candidates of each sketch."""
    pools = [_BestOfSketch(sketch) for sketch in sketches]
    for pool in pools:
        sketch = pool.population.sketch
        half = min(_NUM_ROWS, 4 * sketch.cardinality) // 2
        pool.add(Population.concatenate([sketch.sample(rng, half), sketch.sample_plain(rng, half)]))
    return pools


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

    def drafts(self, num: int) -> _BestOfSketch:
        """The best `num` of them that are legal."""
        found = _BestOfSketch(self.population.sketch)
        is_draft = np.isfinite(self.scores) & (np.arange(len(self.scores)) < num)
        found.population, found.scores = self.population[is_draft], self.scores[is_draft]
        return found

    def evolve(self, rng: np.random.Generator) -> None:
        """One generation: mutants of the best candidates."""
        if self.population.sketch.cardinality <= _NUM_ROWS:
            return
        parents = self.population[np.arange(_NUM_CHILDREN) % len(self.population)]
        self.add(mutate(rng, parents))
