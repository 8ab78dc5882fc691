"""What every cost model must do. A model's tests subclass `CostModelChecks` and say how to make the model.

```python
class TestMyModel(CostModelChecks):
    def make(self) -> CostModel:
        return MyModel(seed=0)
```

Most checks give the model made-up rows of numbers. A model that knows what its columns are subclasses
`EncodedCostModelChecks`, which gives it programs of real sketches, as its own encoder has them.
"""

from __future__ import annotations

import copy
import json
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.cost_model import AnalyticalModel, CostModel, Dataset, Examples, Measured
from tilewright.errors import UsageError
from tilewright.testing.encoder_checks import sketches_of

NUM_FEATURES = 12


def sum_structured(num: int, num_statements: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Features of programs and their latencies, which are sums over statements of a function that is not linear."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 8, (num, num_statements, NUM_FEATURES)).astype(np.float32)
    features[:, :, 0] = np.arange(num_statements)
    compute = np.abs(features[:, :, 1] - features[:, :, 2])
    memory = np.where(features[:, :, 3] > 4, features[:, :, 4], 1.0)
    return features, (1.0 + np.maximum(compute, memory)).sum(axis=1) * 1e-3


def sum_structured_examples(num: int, num_statements: int = 3, seed: int = 0) -> Examples:
    features, latencies_s = sum_structured(num, num_statements, seed)
    return Examples.build(list(features), latencies_s.tolist(), ["task"] * num)


class CostModelChecks(ABC):
    """The conformance checks; `make` gives a new model each time, always with the same options."""

    @abstractmethod
    def make(self) -> CostModel: ...

    def programs(self, num: int, kind: int = 0, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Encoded programs and their latencies; those of another kind, 0 or 1, have another number of rows."""
        return sum_structured(num, (3, 2)[kind], seed)

    def examples(self, num: int, seed: int = 0) -> Examples:
        values, latencies_s = self.programs(num, seed=seed)
        return Examples.build(list(values), latencies_s.tolist(), ["task"] * num)

    def fitted(self, examples: Examples | None = None) -> CostModel:
        model = self.make()
        model.fit_examples(examples or self.examples(64))
        return model

    def test_a_population_is_scored_by_what_the_encoder_gives(self) -> None:
        (sketch, *_) = sketches_of("gemm")
        population = sketch.sample(np.random.default_rng(0), 9)
        model = self.make()
        model.fit(Dataset((Measured(population, np.linspace(1.0, 2.0, 9)),)))
        scores = model.predict(population)
        np.testing.assert_array_equal(scores, model.score(model.encoder.encode(population)))
        assert model.predict(population[:0]).shape == (0,)

    def test_the_options_make_the_same_model_and_go_through_json(self) -> None:
        options = self.make().options
        assert type(self.make())(**json.loads(json.dumps(options))).options == options

    def test_predicting_before_learning_is_an_error_if_there_is_something_to_learn(self) -> None:
        model = self.make()
        if not model.is_fitted:
            with pytest.raises(UsageError, match="has learned nothing yet; call fit"):
                model.score(self.programs(1)[0])
        assert self.fitted().is_fitted

    def test_scores_are_one_finite_number_a_candidate(self) -> None:
        features, _ = self.programs(10, seed=1)
        scores = self.fitted().score(features)
        assert scores.shape == (10,)
        assert scores.dtype == np.float64
        assert np.isfinite(scores).all()

    def test_programs_are_told_apart(self) -> None:
        features, _ = self.programs(10, seed=1)
        assert len(np.unique(self.fitted().score(features))) > 1

    def test_an_empty_population_has_no_scores(self) -> None:
        assert self.fitted().score(self.programs(1)[0][:0]).shape == (0,)

    def test_features_of_the_wrong_rank_are_refused(self) -> None:
        rows = self.programs(1)[0][0]
        with pytest.raises(UsageError, match=rf"\[candidate, row, number\], got the shape \({len(rows)}, \d+\)"):
            self.fitted().score(rows)

    def test_a_score_depends_on_the_candidate_alone(self) -> None:
        features, _ = self.programs(10, seed=1)
        model = self.fitted()
        scores = model.score(features)
        one_by_one = [model.score(features[i : i + 1])[0] for i in range(len(features))]
        np.testing.assert_array_equal(scores, one_by_one)
        np.testing.assert_array_equal(scores[::-1], model.score(features[::-1]))

    def test_predicting_leaves_the_features_as_they_are(self) -> None:
        features, _ = self.programs(10, seed=1)
        before = features.copy()
        self.fitted().score(features)
        np.testing.assert_array_equal(features, before)

    def test_the_same_data_gives_the_same_scores(self) -> None:
        features, _ = self.programs(10, seed=1)
        np.testing.assert_array_equal(self.fitted().score(features), self.fitted().score(features))

    def test_fit_forgets_what_was_learned_before(self) -> None:
        features, _ = self.programs(10, seed=1)
        model = self.fitted(self.examples(50, seed=2))
        model.fit_examples(self.examples(64))
        np.testing.assert_array_equal(model.score(features), self.fitted().score(features))

    def test_programs_may_have_different_numbers_of_statements(self) -> None:
        three, latencies_3 = self.programs(20, kind=0, seed=1)
        two, latencies_2 = self.programs(20, kind=1, seed=2)
        latencies_s = [*latencies_3.tolist(), *latencies_2.tolist()]
        model = self.fitted(Examples.build([*three, *two], latencies_s, ["task"] * 40))
        assert np.isfinite(model.score(three)).all()
        assert np.isfinite(model.score(two)).all()

    @pytest.mark.parametrize("latency_s", [None, 1.0])
    @pytest.mark.parametrize("num", [1, 5])
    def test_little_or_failed_data_gives_finite_scores(self, latency_s: float | None, num: int) -> None:
        features, _ = self.programs(num, seed=1)
        model = self.fitted(Examples.build(list(features), [latency_s] * num, ["task"] * num))
        assert np.isfinite(model.score(features)).all()

    def test_a_saved_model_gives_the_same_scores_and_learns_on_alike(self, tmp_path: Path) -> None:
        features, _ = self.programs(10, seed=1)
        model = self.fitted()
        model.save(tmp_path / "model")
        loaded = type(model).load(tmp_path / "model")
        assert loaded.options == model.options
        np.testing.assert_array_equal(loaded.score(features), model.score(features))
        for one in (model, loaded):
            one.update_examples(self.examples(70))
        np.testing.assert_array_equal(loaded.score(features), model.score(features))

    def test_fine_tuning_goes_on_from_what_was_learned(self) -> None:
        features, _ = self.programs(10, seed=1)
        model = self.fitted()
        if not model.goes_on:
            with pytest.raises(UsageError, match=r"fine-tuned|nothing"):
                model.fine_tune(Dataset())
            return
        few = self.examples(30, seed=5)
        few = replace(few, labels=few.labels[::-1].copy())  # a model that knew all has something to learn
        before, anew = model.score(features), self.fitted(few).score(features)
        model.fine_tune_examples(few)
        after = model.score(features)
        assert np.isfinite(after).all()
        assert not np.array_equal(after, before)
        assert not np.array_equal(after, anew)

    def test_a_copy_learns_on_its_own(self) -> None:
        features, _ = self.programs(10, seed=1)
        model = self.fitted()
        scores = model.score(features)
        copied = copy.deepcopy(model)
        np.testing.assert_array_equal(copied.score(features), scores)
        copied.update_examples(self.examples(70))
        np.testing.assert_array_equal(model.score(features), scores)

    def test_a_model_that_has_learned_nothing_can_be_saved(self, tmp_path: Path) -> None:
        self.make().save(tmp_path / "model")
        assert type(self.make()).load(tmp_path / "model").is_fitted == self.make().is_fitted

    def test_a_file_holds_arrays_and_no_pickle(self, tmp_path: Path) -> None:
        self.fitted().save(tmp_path / "model")
        with np.load(tmp_path / "model", allow_pickle=False) as file:
            assert all(file[name].dtype != object for name in file.files)
        assert [path.name for path in tmp_path.iterdir()] == ["model"]


class EncodedCostModelChecks(CostModelChecks):
    """The same checks with programs of real sketches, for a model that reads the columns of its own encoder alone."""

    def programs(self, num: int, kind: int = 0, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        population = sketches_of("conv1d", 1)[(0, 2)[kind]].sample(np.random.default_rng(seed), num)
        return self.make().encoder.encode(population), np.exp(-AnalyticalModel().predict(population)) * 1e-9

    def test_columns_of_another_encoder_are_refused(self) -> None:
        with pytest.raises(UsageError, match="columns of the encoder"):
            self.make().fit_examples(sum_structured_examples(8))
        values = self.programs(2)[0]
        with pytest.raises(UsageError, match="features, got"):
            self.fitted().score(values[:, :, 1:])
