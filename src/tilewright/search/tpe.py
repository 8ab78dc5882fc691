"""Tree-structured Parzen estimators, by Optuna: what good and bad programs that were measured have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tilewright.errors import UsageError
from tilewright.search.base import SearchStrategy, Told
from tilewright.search.options import whole
from tilewright.search.points import IntArray, Points
from tilewright.space import Candidate, Knob, Sketch

_MAX_SUGGESTED = 16
_SKETCH = "sketch"


@dataclass(kw_only=True, eq=False)
class TPESearch(SearchStrategy):
    """Optuna's sampler on measured latencies. `startup` random candidates come first.

    A parameter is a column of a knob's table, by the place of its number among the numbers of that column: they are
    ordered, and tiles are spread evenly. The choice that lies nearest to what Optuna suggests is taken. Knobs of
    several sketches that have the same choices are the same parameters. Optuna is told of the choices that were
    measured; of those that are illegal or failed as pruned, which it counts as bad.
    """

    uses_scores: ClassVar[bool] = False

    startup: int = whole(10, least=0)

    _told: list[tuple[Candidate, float | None]] = field(init=False, repr=False)
    _study: Any = field(init=False, repr=False)
    _parameters: dict[Sketch, list[_KnobParameters]] = field(init=False, repr=False)
    _running: dict[Candidate, Any] = field(init=False, repr=False)
    """Optuna's trials of what was given and not told: it keeps away from them."""

    def prepare(self) -> None:
        self._told = []
        self._begin_study()

    def add(self, sketch: Sketch) -> None:
        super().add(sketch)
        self._begin_study()

    def _begin_study(self) -> None:
        """The choices of a parameter cannot change, so that another sketch needs another study, which is told again."""
        optuna = _optuna()
        sampler = optuna.samplers.TPESampler(seed=int(self.rng.integers(2**31)), n_startup_trials=self.startup)
        with _quiet(optuna):
            self._study = optuna.create_study(sampler=sampler)
        self._parameters = _parameters(self.sketches)
        self._running = {}
        for candidate, latency_s in self._told:
            self._learn(candidate, latency_s)

    def ask(self, n: int) -> list[Candidate]:
        found: list[Candidate] = []
        while len(found) < n:
            new = self._suggested_new(min(n - len(found), _MAX_SUGGESTED))
            if not new:  # it insists on what is known or illegal
                break
            found += new
        return found + self.random_new(n - len(found))

    def learn(self, told: Sequence[Told]) -> None:
        for each in told:
            self._note(each.candidate, each.latency_s)

    def _suggested_new(self, n: int) -> list[Candidate]:
        """Up to `n` legal ones of as many suggestions."""
        suggested = [self._suggested() for _ in range(n)]
        points = Points.of(self.sketches, [candidate for candidate, _ in suggested])
        found: list[Candidate] = []
        for (candidate, trial), is_legal in zip(suggested, points.legal(self.target).tolist(), strict=True):
            new = self.take_new([candidate], 1)
            if new and is_legal:
                self._running[candidate] = trial
                found += new
                continue
            self._end(trial)
            if new:
                self._note(candidate, None)
        return found

    def _suggested(self) -> tuple[Candidate, Any]:
        trial = self._study.ask()
        sketch = self.sketches[trial.suggest_categorical(_SKETCH, list(range(len(self.sketches))))]
        row = [
            parameters.choice([trial.suggest_int(name, 0, last) for name, last in parameters.ranges.items()])
            for parameters in self._parameters[sketch]
        ]
        return Candidate(sketch, tuple(row)), trial

    def _note(self, candidate: Candidate, latency_s: float | None) -> None:
        self._told.append((candidate, latency_s))
        self._learn(candidate, latency_s)

    def _learn(self, candidate: Candidate, latency_s: float | None) -> None:
        optuna = _optuna()
        if candidate in self._running:
            self._end(self._running.pop(candidate))
        ranges: dict[str, int] = {}
        values: dict[str, int] = {}
        for parameters, choice in zip(self._parameters[candidate.sketch], candidate.row, strict=True):
            ranges |= parameters.ranges
            values |= dict(zip(parameters.ranges, parameters.places[choice].tolist(), strict=True))
        distributions: dict[str, Any] = {n: optuna.distributions.IntDistribution(0, last) for n, last in ranges.items()}
        distributions[_SKETCH] = optuna.distributions.CategoricalDistribution(list(range(len(self.sketches))))
        state = optuna.trial.TrialState.PRUNED if latency_s is None else optuna.trial.TrialState.COMPLETE
        self._study.add_trial(
            optuna.trial.create_trial(
                state=state,
                value=latency_s,
                params={**values, _SKETCH: self.sketches.index(candidate.sketch)},
                distributions=distributions,
            )
        )

    def _end(self, trial: Any) -> None:
        """A suggestion itself is not learned from: what was measured is the choice that lay nearest to it."""
        self._study.tell(trial, state=_optuna().trial.TrialState.FAIL)


@dataclass(frozen=True, slots=True)
class _KnobParameters:
    """A knob as Optuna sees it: a whole number for each column in which the choices differ."""

    ranges: dict[str, int]
    """By name, the greatest of each; the least is 0."""
    places: IntArray
    """`[choice, parameter]`: what the choices are."""

    @staticmethod
    def of(knob: Knob, name: str) -> _KnobParameters:
        places = [np.unique(column, return_inverse=True)[1] for column in knob.table.T]
        differing = {f"{name}.{number}": place for number, place in enumerate(places) if place.max() > 0}
        stacked = np.stack(list(differing.values()), axis=1) if differing else np.zeros((knob.cardinality, 0), np.int64)
        return _KnobParameters({name: int(place.max()) for name, place in differing.items()}, stacked)

    def choice(self, values: Sequence[int]) -> int:
        """The choice that lies nearest."""
        return int(np.argmin(np.abs(self.places - np.asarray(values, np.int64)).sum(axis=1)))


def _parameters(sketches: Sequence[Sketch]) -> dict[Sketch, list[_KnobParameters]]:
    """The parameters of each knob. The first knob with a table is the same in all sketches, as is the second."""
    names: defaultdict[object, str] = defaultdict(lambda: f"knob {len(names)}")
    found: dict[Sketch, list[_KnobParameters]] = {}
    for sketch in sketches:
        tables = [(knob.table.shape, knob.table.tobytes()) for knob in sketch.knobs]
        keys = [(table, tables[:position].count(table)) for position, table in enumerate(tables)]
        found[sketch] = [_KnobParameters.of(k, names[key]) for k, key in zip(sketch.knobs, keys, strict=True)]
    return found


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError:
        raise UsageError(
            "the search tpe is done by optuna, which is not installed: pip install tilewright[optuna], "
            "or search with another, such as evolutionary"
        ) from None
    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Optuna tells of every study that is made."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)
