"""Boosted trees: a program's score is the sum of the scores of its rows, which are statements most of the time.

They learn throughput, which programs of a task are faster, or what the analytical model gets wrong of either. They read
any features whose columns are the same for all sketches: those of statements, loop contexts, curves, or knobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.arguments import Range
from tilewright.cost_model.analytical import score_of
from tilewright.cost_model.base import CostModel
from tilewright.cost_model.examples import Examples
from tilewright.cost_model.forest import NAMES, Forest
from tilewright.cost_model.option_ranges import COUNTS, PART, TREES
from tilewright.cost_model.tree_objectives import (
    ProgramObjective,
    RankInLists,
    Squared,
    SquaredInLists,
    by_statement,
)
from tilewright.cost_model.views import DeviceInRows
from tilewright.errors import UsageError
from tilewright.features import ESTIMATE, Encoder, StatementEncoder, create_encoder

SQUARED, RANK = "squared", "rank"
OBJECTIVES = (SQUARED, RANK)
_ESTIMATE = StatementEncoder().columns.index(ESTIMATE)

Floats = NDArray[np.float64]


@dataclass(kw_only=True, eq=False)
class BoostedTrees(CostModel):
    """Trees that learn the throughput of programs, weighted by throughput: fast programs matter most.

    With the objective "rank" they learn the order of the programs of a subject instead (LambdaRank). With `residual`
    they begin with what the analytical model says, times the factor that suits the data best, and learn what is wrong
    with it; throughput is then taken as a logarithm, which is right but for a factor that each subject has.

    `update` adds a few trees to those there are, and starts anew each time that the data has grown by
    `refit_growth`, so that training stays a small part of tuning.
    """

    name: ClassVar[str] = "boosted-trees"
    goes_on: ClassVar[bool] = True
    ranges: ClassVar[Mapping[str, Range]] = {
        **TREES,
        "num_trees": COUNTS,
        "num_update_trees": COUNTS,
        "min_weight": PART,
        "refit_growth": Range(1, 1e30),
        "max_update_programs": COUNTS,
    }

    features: str = StatementEncoder.name
    """The name of the encoder that they read, such as loop-context, curves or knobs. With "+hardware" each row also has
    the numbers of the device, so that trees learn from several devices at once."""
    objective: str = SQUARED
    """"squared" error of throughput, or "rank"."""
    residual: bool = False
    num_trees: int = 40
    num_update_trees: int = 8
    learning_rate: float = 0.2
    max_depth: int = 4
    max_bins: int = 32
    min_child_weight: float = 0.1
    l2: float = 0.1
    min_weight: float = 0.05
    """What a program weighs at least, so that failures teach, too."""
    refit_growth: float = 1.2
    max_update_programs: int = 1024
    """An update without a refit sees the newest half of these, and a sample of the rest."""
    num_threads: int = 1
    seed: int = 0

    forest_: Forest | None = field(default=None, init=False, repr=False)
    base_: float = field(default=0.0, init=False, repr=False)
    slope_: float = field(default=0.0, init=False, repr=False)
    """How much of the analytical model's score is in that of the trees."""
    num_fitted_: int = field(default=0, init=False, repr=False)
    """The programs of the last `fit`."""
    num_updates_: int = field(default=0, init=False, repr=False)
    """The updates since then."""

    @property
    def encoder(self) -> Encoder:
        return _encoder(self.features)

    @classmethod
    def checked_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        known = super().checked_options(options)
        if "features" in known:
            _encoder(known["features"])
        return known

    @property
    def is_fitted(self) -> bool:
        return self.forest_ is not None

    def fit_examples(self, examples: Examples) -> None:
        if len(examples) == 0:
            raise UsageError("a cost model learns from at least one program, got no examples; measure some first")
        self._check(examples)
        examples = self._with_device(examples)
        base, slope = 0.0, 0.0
        if self.residual:
            slope = self._objective_in_lists(examples).slope(_analytical(examples))
        elif self.objective == SQUARED:
            base = float(np.average(examples.labels, weights=self._weights(examples)))
        # What was learned before stays until all is learned: an interrupt would leave a base, and no trees over it.
        self.forest_ = self._boosted(Forest.over(examples.values), examples, self.num_trees, base, slope)
        self.base_, self.slope_ = base, slope
        self.num_fitted_, self.num_updates_ = len(examples), 0

    def update_examples(self, examples: Examples) -> None:
        if self.forest_ is None or self._is_outgrown_by(examples, self.forest_):
            self.fit_examples(examples)
            return
        if len(examples) > self.max_update_programs:
            examples = examples.select(self._sample(len(examples)))
        self._go_on(self.forest_, examples, self.num_update_trees)
        self.num_updates_ += 1

    def fine_tune_examples(self, examples: Examples) -> None:
        """Half as many trees more, on what those that there are get wrong of these programs."""
        assert self.forest_ is not None
        if len(examples) == 0:
            raise UsageError("a cost model learns from at least one program, got no examples; measure some first")
        self._check(examples)
        self.forest_.check_features(examples.num_features)
        if self.slope_ and not self.residual:
            raise UsageError(
                "trees that have learned what the analytical model gets wrong go on with that, got residual=false; "
                "leave it true, or fit them anew"
            )
        self._go_on(self.forest_, examples, -(-self.num_trees // 2))

    def _go_on(self, forest: Forest, examples: Examples, num_trees: int) -> None:
        self.forest_ = self._boosted(forest, self._with_device(examples), num_trees, self.base_, self.slope_)

    def _with_device(self, examples: Examples) -> Examples:
        device = DeviceInRows.of(self.encoder)
        return examples if device is None else device.examples(examples)

    def _is_outgrown_by(self, examples: Examples, forest: Forest) -> bool:
        """Also when the added trees have become as many as the first ones: predicting takes time for each."""
        return (
            len(examples) > self.num_fitted_ * self.refit_growth
            or examples.num_features != forest.num_features
            or (self.num_updates_ + 1) * self.num_update_trees > self.num_trees
        )

    def _sample(self, num_programs: int) -> NDArray[np.int64]:
        num_newest = self.max_update_programs // 2
        num_older = num_programs - num_newest
        rng = np.random.default_rng((self.seed, num_programs))
        older = rng.choice(num_older, self.max_update_programs - num_newest, replace=False)
        return np.concatenate([np.sort(older), np.arange(num_older, num_programs)])

    def _check(self, examples: Examples) -> None:
        self._check_ranges()
        if self.objective not in OBJECTIVES:
            raise UsageError(f"objective of boosted trees is one of {', '.join(OBJECTIVES)}, got {self.objective!r}")
        if self.residual and self.features != StatementEncoder.name:
            raise UsageError(
                f"trees on a residual of the analytical model read the features {StatementEncoder.name}, got "
                f"{self.features!r}; leave out features or residual"
            )
        num_columns = len(self.encoder.columns)
        if self.residual and examples.num_features != num_columns:
            raise UsageError(
                f"trees on a residual know the {num_columns} columns of the encoder {self.encoder.name}, got "
                f"{examples.num_features} features; give them programs that it has encoded"
            )

    def _weights(self, examples: Examples) -> Floats:
        return np.maximum(examples.labels, self.min_weight)

    def _boosted(self, forest: Forest, examples: Examples, num_trees: int, base: float, slope: float) -> Forest:
        offset = slope * _analytical(examples) if self.residual else base
        objective = by_statement(self._objective(examples), examples, offset, self.learning_rate)
        return forest.boosted(examples.values, objective, self._parameters(), num_trees)

    def _parameters(self) -> dict[str, Any]:
        return {
            "max_bin": self.max_bins,
            "max_depth": self.max_depth,
            "eta": self.learning_rate,
            "min_child_weight": self.min_child_weight,
            "lambda": self.l2,
            "nthread": self.num_threads,
            "seed": self.seed,
        }

    def _objective(self, examples: Examples) -> ProgramObjective:
        if self.residual or self.objective == RANK:
            return self._objective_in_lists(examples)
        return Squared(examples.labels, self._weights(examples))

    def _objective_in_lists(self, examples: Examples) -> SquaredInLists | RankInLists:
        if self.objective == RANK:
            return RankInLists(examples.labels, examples.tasks, self.seed)
        weights = self._weights(examples)
        return SquaredInLists(np.log(weights), weights, examples.tasks)

    def _score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        assert self.forest_ is not None
        self.forest_.check_features(values.shape[2])
        device = DeviceInRows.of(self.encoder)
        if device is not None:
            values = device.values(values)
        num_candidates, num_statements, num_features = values.shape
        scores = self.forest_.score(values.reshape(-1, num_features))
        totals: Floats = scores.reshape(num_candidates, num_statements).sum(axis=1, dtype=np.float64) + self.base_
        if self.residual:
            totals += self.slope_ * score_of(_cycles(values).sum(axis=1))
        return totals

    def _state(self) -> dict[str, NDArray[Any]]:
        if self.forest_ is None:
            return {}
        return {
            "base": np.array(self.base_),
            "slope": np.array(self.slope_),
            "counts": np.array([self.forest_.num_features, self.num_fitted_, self.num_updates_]),
            **self.forest_.to_arrays(self._names(self.forest_.num_features)),
        }

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if not arrays:
            return
        self.base_ = float(arrays["base"])
        self.slope_ = float(arrays["slope"] if self.residual else arrays.get("slope", 0.0))  # earlier files have none
        num_features, self.num_fitted_, self.num_updates_ = map(int, arrays["counts"].tolist())
        if not np.isfinite([self.base_, self.slope_]).all():
            raise ValueError(f"scores begin with finite numbers, got {self.base_} and {self.slope_}")
        if NAMES in arrays:
            num_features = len(self.encoder.columns)  # there may be more of them than when it was saved
        if self.residual and num_features != len(self.encoder.columns):
            raise ValueError(f"a residual is on {len(self.encoder.columns)} features, got {num_features}")
        self.forest_ = Forest.from_arrays(arrays, num_features, self.num_threads, self._names(num_features))

    def _names(self, num_features: int) -> tuple[str, ...]:
        """Of the columns; none where they are not those of the encoder."""
        names = self.encoder.columns
        return names if len(names) == num_features else ()


def _encoder(features: str) -> Encoder:
    encoder = create_encoder(features)
    if not encoder.columns:
        raise UsageError(
            f"boosted trees read features with the same columns for all sketches, and those of {features} differ from "
            f"sketch to sketch; choose others, such as knobs"
        )
    return encoder


def _analytical(examples: Examples) -> Floats:
    """The analytical model's scores, up to what rounding makes of the estimates."""
    return score_of(np.add.reduceat(_cycles(examples.values), examples.offsets[:-1]))


def _cycles(values: NDArray[np.float32]) -> Floats:
    """By the roofline, of each statement."""
    cycles: Floats = np.exp2(values[..., _ESTIMATE].astype(np.float64)) - 1
    return cycles
