"""Boosted trees on statement features: a program's score is the sum of the scores of its statements.

The trees come from xgboost, of which only what has been stable for years is used: DMatrix, train with an objective,
inplace_predict, and the JSON of a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.base import CostModel
from tilewright.cost_model.examples import Examples
from tilewright.cost_model.tree_checks import check_trees
from tilewright.errors import UsageError
from tilewright.features import Encoder, StatementEncoder

Objective = Callable[[NDArray[np.float32], Any], tuple[NDArray[np.float64], NDArray[np.float64]]]


@dataclass(kw_only=True, eq=False)
class BoostedTrees(CostModel):
    """Trees that minimise the squared error of throughput, weighted by throughput: fast programs matter most.

    `update` adds a few trees to those there are, and starts anew each time that the data has grown by
    `refit_growth`, so that training stays a small part of tuning.
    """

    name: ClassVar[str] = "boosted-trees"
    encoder: ClassVar[Encoder] = StatementEncoder()

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

    booster_: Any = field(default=None, init=False, repr=False)
    base_: float = field(default=0.0, init=False, repr=False)
    columns_: NDArray[np.int64] | None = field(default=None, init=False, repr=False)
    """The features that varied where the trees began; the others are not given to them."""
    num_features_: int = field(default=0, init=False, repr=False)
    num_fitted_: int = field(default=0, init=False, repr=False)
    """The programs of the last `fit`."""
    num_updates_: int = field(default=0, init=False, repr=False)
    """The updates since then."""

    @property
    def is_fitted(self) -> bool:
        return self.columns_ is not None

    def fit_examples(self, examples: Examples) -> None:
        if len(examples) == 0:
            raise UsageError("a cost model learns from at least one program, got no examples; measure some first")
        weights = self._weights(examples)
        self.base_ = float(np.average(examples.labels, weights=weights))
        self.columns_ = np.flatnonzero(np.ptp(examples.values, axis=0) > 0)
        self.num_features_ = examples.num_features
        self.num_fitted_ = len(examples)
        self.num_updates_ = 0
        self.booster_ = None
        self._boost(examples, self.num_trees)

    def update_examples(self, examples: Examples) -> None:
        if not self.is_fitted or self._is_outgrown_by(examples):
            self.fit_examples(examples)
            return
        self.num_updates_ += 1
        if len(examples) > self.max_update_programs:
            examples = examples.select(self._sample(len(examples)))
        self._boost(examples, self.num_update_trees)

    def _is_outgrown_by(self, examples: Examples) -> bool:
        """Also when the added trees have become as many as the first ones: predicting takes time for each."""
        return (
            len(examples) > self.num_fitted_ * self.refit_growth
            or examples.num_features != self.num_features_
            or (self.num_updates_ + 1) * self.num_update_trees > self.num_trees
        )

    def _sample(self, num_programs: int) -> NDArray[np.int64]:
        num_newest = self.max_update_programs // 2
        num_older = num_programs - num_newest
        rng = np.random.default_rng((self.seed, num_programs))
        older = rng.choice(num_older, self.max_update_programs - num_newest, replace=False)
        return np.concatenate([np.sort(older), np.arange(num_older, num_programs)])

    def _weights(self, examples: Examples) -> NDArray[np.float64]:
        return np.maximum(examples.labels, self.min_weight)

    def _boost(self, examples: Examples, num_trees: int) -> None:
        assert self.columns_ is not None
        if len(self.columns_) == 0:
            return
        import xgboost

        matrix = xgboost.DMatrix(examples.values[:, self.columns_], nthread=self.num_threads)
        self.booster_ = xgboost.train(
            self._parameters(), matrix, num_trees, obj=self._objective(examples), xgb_model=self.booster_
        )

    def _parameters(self) -> dict[str, Any]:
        return {
            "tree_method": "hist",
            "max_bin": self.max_bins,
            "max_depth": self.max_depth,
            "eta": self.learning_rate,
            "min_child_weight": self.min_child_weight,
            "lambda": self.l2,
            "base_score": 0.0,
            "nthread": self.num_threads,
            "seed": self.seed,
            "verbosity": 0,
        }

    def _objective(self, examples: Examples) -> Objective:
        """Gradients of weight / 2 * (base + sum of statement scores - label)^2, by statement score.

        The second derivative is the weight. Where all statements of a program are in one leaf, its score moves by as
        many times the leaf's step; a larger second derivative keeps many of them from overshooting.
        """
        counts, starts = examples.num_statements, examples.offsets[:-1]
        weights = self._weights(examples)
        curvature = np.repeat(weights * np.maximum(1.0, self.learning_rate * counts), counts)

        def objective(scores: NDArray[np.float32], _: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            error = self.base_ + np.add.reduceat(scores, starts, dtype=np.float64) - examples.labels
            return np.repeat(weights * error, counts), curvature

        return objective

    def _score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        assert self.columns_ is not None
        num_candidates, num_statements, num_features = values.shape
        if num_features != self.num_features_:
            raise UsageError(
                f"the cost model has learned from {self.num_features_} features, got {num_features}; fit it anew"
            )
        if self.booster_ is None:
            return np.full(num_candidates, self.base_)
        rows = values.reshape(-1, num_features)[:, self.columns_]
        scores: NDArray[np.float32] = self.booster_.inplace_predict(rows, predict_type="margin")
        totals: NDArray[np.float64] = scores.reshape(num_candidates, num_statements).sum(axis=1, dtype=np.float64)
        return totals + self.base_

    def _state(self) -> dict[str, NDArray[Any]]:
        if self.columns_ is None:
            return {}
        state: dict[str, NDArray[Any]] = {
            "base": np.array(self.base_),
            "columns": self.columns_,
            "counts": np.array([self.num_features_, self.num_fitted_, self.num_updates_]),
        }
        if self.booster_ is not None:
            state["trees_json"] = np.frombuffer(self.booster_.save_raw("json"), np.uint8)
            state["probe"] = self._probe()
        return state

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if "columns" not in arrays:
            return
        self.base_ = float(arrays["base"])
        self.num_features_, self.num_fitted_, self.num_updates_ = map(int, arrays["counts"].tolist())
        self.columns_ = _checked_columns(arrays["columns"], self.num_features_)
        if "trees_json" not in arrays:
            return
        check_trees(arrays["trees_json"].tobytes(), len(self.columns_))
        import xgboost

        self.booster_ = xgboost.Booster()
        self.booster_.load_model(bytearray(arrays["trees_json"].tobytes()))
        self.booster_.set_param({"nthread": self.num_threads})
        if not np.allclose(self._probe(), arrays["probe"], rtol=1e-5, atol=1e-6):
            raise UsageError(
                f"the trees of a cost model score as they did when saved, but xgboost {xgboost.__version__} reads them "
                f"otherwise; use the version that wrote them or a newer one, or fit the model anew"
            )

    def _probe(self) -> NDArray[np.float32]:
        """Scores of two made-up statements. An older xgboost can misread a newer one's trees without a word."""
        assert self.columns_ is not None
        rows = np.repeat(np.array([[0.0], [8.0]], np.float32), len(self.columns_), axis=1)
        scores: NDArray[np.float32] = self.booster_.inplace_predict(rows, predict_type="margin")
        return scores


def _checked_columns(columns: NDArray[Any], num_features: int) -> NDArray[np.int64]:
    if columns.ndim != 1 or columns.dtype.kind != "i" or np.any((columns < 0) | (columns >= num_features)):
        raise ValueError(f"columns are numbers below {num_features}, got {columns.dtype} {list(columns.shape)}")
    return columns.astype(np.int64)
