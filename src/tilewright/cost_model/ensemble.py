"""Several models that see programs differently, and the mean of what they say."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.arguments import Range
from tilewright.cost_model.base import CostModel
from tilewright.cost_model.examples import Examples
from tilewright.cost_model.factor_trees import FactorTrees
from tilewright.cost_model.option_ranges import THREADS
from tilewright.cost_model.views import View, joined_encoder
from tilewright.errors import UsageError
from tilewright.features import Encoder

Floats = NDArray[np.float64]

MEMBERS = (f"{FactorTrees.name}:grades=4", f"{FactorTrees.name}:grades=4", f"{FactorTrees.name}:grades=8")
_MOST_MEMBERS = 16
_SHARES = "shares"
_ROUNDING = 1e-9
"""Scores that are less apart than that, relative to what they are, are the same."""


@dataclass(kw_only=True, eq=False)
class Ensemble(CostModel):
    """The mean of models whose errors differ. Each learns from the same programs, and reads of them what it reads.

    Scores of different models have different scales. So each is divided by how far, in the median subject that it has
    learned from, its scores are apart, and multiplied by the same of the first member: scores are on its scale. What a
    candidate scores depends on it alone, whichever others it is scored with.
    """

    name: ClassVar[str] = "ensemble"
    ranges: ClassVar[Mapping[str, Range]] = {
        "num_threads": THREADS,
        "seed": Range(0, 2**63 // _MOST_MEMBERS - 1, is_whole=True),
    }

    members: list[str] = field(default_factory=lambda: list(MEMBERS))
    """Names of models, with options behind them if there are any, as in "boosted-trees:objective=rank"."""
    num_threads: int = 1
    seed: int = 0
    """Each member has one of its own, and none that a member has with another seed."""

    models_: tuple[CostModel, ...] = field(default=(), init=False, repr=False)
    shares_: Floats | None = field(default=None, init=False, repr=False)
    """By what the scores of each member are multiplied."""

    @classmethod
    def checked_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        known = super().checked_options(options)
        if "members" in known:
            cls(members=known["members"])._made()
        return known

    @property
    def encoder(self) -> Encoder:
        return joined_encoder([model.encoder for model in self._made()])

    @property
    def is_fitted(self) -> bool:
        return self.shares_ is not None

    @property
    def verified_share(self) -> float:
        return min(model.verified_share for model in self._made())

    def on_device(self, device: str) -> Ensemble:
        made = copy.copy(self)
        made.models_ = tuple(model.on_device(device) for model in self.models_)
        return made

    def fit_examples(self, examples: Examples) -> None:
        if len(examples) == 0:
            raise UsageError("a cost model learns from at least one program, got no examples; measure some first")
        self._check_columns(examples.num_features)
        models = self._new()
        deviations = []
        for model in models:
            own = View.of(model.encoder, self.encoder).examples(examples)
            model.fit_examples(own)
            deviations.append(_typical_deviation(model.score_examples(own), examples.tasks))
        self.models_, self.shares_ = models, _shares(np.array(deviations))

    def score_examples(self, examples: Examples) -> Floats:
        """As of any model; those of another sketch may have the same number of rows, and other parts of them."""
        self._check_fitted()
        self._check_columns(examples.num_features)
        total = np.zeros(len(examples))
        for model, share, view in self._parts():
            total += share * model.score_examples(view.examples(examples))
        return total

    def _score(self, values: NDArray[np.float32]) -> Floats:
        self._check_columns(values.shape[2])
        total = np.zeros(len(values))
        for model, share, view in self._parts():
            total += share * model.score(view.values(values))
        return total

    def _parts(self) -> Iterator[tuple[CostModel, float, View]]:
        """The members that have learned, their shares, and what they read."""
        assert self.shares_ is not None
        whole = self.encoder
        for model, share in zip(self.models_, self.shares_.tolist(), strict=True):
            yield model, share, View.of(model.encoder, whole)

    def _made(self) -> tuple[CostModel, ...]:
        """The members, as far as they are known: those that have learned, or new ones."""
        return self.models_ or self._new()

    def _new(self) -> tuple[CostModel, ...]:
        self._check_ranges()  # before members are given seeds that nobody chose
        members: Any = self.members
        are_names = isinstance(members, list | tuple) and all(isinstance(text, str) for text in members)
        if not are_names or not 0 < len(members) <= _MOST_MEMBERS:
            raise UsageError(
                f"members of an ensemble are the names of 1 to {_MOST_MEMBERS} cost models, got {self.members!r}; "
                f"give a list such as {list(MEMBERS)}"
            )
        return tuple(self._member(text, number) for number, text in enumerate(self.members))

    def _member(self, text: str, number: int) -> CostModel:
        from tilewright.cost_model.registry import create_from_text  # which knows this model, too

        if text.partition(":")[0] == self.name:
            raise UsageError(f"members of an ensemble are other models, got {text!r}; name its members instead")
        return create_from_text(text, seed=self.seed * _MOST_MEMBERS + number, num_threads=self.num_threads)

    def _check_columns(self, num_columns: int) -> None:
        if num_columns != len(self.encoder.columns):
            raise UsageError(
                f"the cost model {self.name} of {', '.join(self.members)} reads the {len(self.encoder.columns)} "
                f"columns of the encoder {self.encoder.name}, not of other features, got {num_columns}; give it "
                "programs that this encoder has encoded"
            )

    def _state(self) -> dict[str, NDArray[Any]]:
        if self.shares_ is None:
            return {}
        state: dict[str, NDArray[Any]] = {_SHARES: self.shares_}
        for number, model in enumerate(self.models_):
            state |= {f"{number}:{name}": array for name, array in model._state().items()}
        return state

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if not arrays:
            return
        models = self._new()
        shares = arrays[_SHARES].astype(np.float64)
        if shares.shape != (len(models),) or not np.isfinite(shares).all():
            raise ValueError(f"{len(models)} members have as many finite shares, got {shares}")
        for number, model in enumerate(models):
            prefix = f"{number}:"
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            model._restore(own)
            if not model.is_fitted:
                raise ValueError(f"the member {self.members[number]} has learned nothing")
        self.models_, self.shares_ = models, shares


def _typical_deviation(scores: Floats, tasks: NDArray[np.int64]) -> float:
    """Of scores in the median task of those whose programs are told apart; 0 where there is none."""
    _, own, counts = np.unique(tasks, return_inverse=True, return_counts=True)
    means = np.bincount(own, scores) / counts
    deviations = np.sqrt(np.bincount(own, (scores - means[own]) ** 2) / counts)
    told_apart = deviations[deviations > _ROUNDING * (1 + np.abs(means))]
    return float(np.median(told_apart)) if len(told_apart) else 0.0


def _shares(deviations: Floats) -> Floats:
    """Of each member, so that all say as much, on the scale of the first; of one that tells nothing apart, 0."""
    spread = deviations[deviations > 0]
    scale = deviations[0] or (spread[0] if len(spread) else 1.0)
    return np.divide(scale, deviations, out=np.zeros_like(deviations), where=deviations > 0) / len(deviations)
