"""Boosted trees learn sums over statements, weigh fast programs more, and are updated cheaply."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import UsageError
from tilewright.cost_model import (
    AnalyticalModel,
    BoostedTrees,
    CostModel,
    Dataset,
    Examples,
    Measured,
    RandomModel,
    average_peak_score,
    create,
    pairwise_accuracy,
)
from tilewright.cost_model.array_file import names_array, names_of, text_array
from tilewright.cost_model.base import read_file, write_arrays
from tilewright.cost_model.forest import Forest
from tilewright.features import FEATURE_NAMES, StatementEncoder, create_encoder
from tilewright.space import Population, SpaceOptions, derive
from tilewright.target import Target
from tilewright.testing.cost_model_checks import NUM_FEATURES, sum_structured, sum_structured_examples
from tilewright.workloads import parse


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    ranks_a, ranks_b = (np.unique(values, return_inverse=True)[1].astype(np.float64) for values in (a, b))
    return float(np.corrcoef(ranks_a, ranks_b)[0, 1])


def test_learns_a_sum_over_statements() -> None:
    model = BoostedTrees()
    model.fit_examples(sum_structured_examples(1500))
    features, latencies_s = sum_structured(500, 3, seed=1)
    scores = model.score(features)
    assert rank_correlation(scores, 1 / latencies_s) > 0.9
    assert pairwise_accuracy(scores, 1 / latencies_s) > 0.85
    assert average_peak_score(scores, 1 / latencies_s, 16) > 0.9


def test_ranks_better_than_chance_after_one_round() -> None:
    features, latencies_s = sum_structured(500, 3, seed=1)
    trees, blind = BoostedTrees(), RandomModel()
    trees.fit_examples(sum_structured_examples(32))
    assert pairwise_accuracy(trees.score(features), 1 / latencies_s) > 0.6
    assert abs(pairwise_accuracy(blind.score(features), 1 / latencies_s) - 0.5) < 0.05


def test_compares_programs_with_different_numbers_of_statements() -> None:
    groups = [sum_structured(500, num, seed=num) for num in (2, 3, 5)]
    features = [f for group, _ in groups for f in group]
    latencies_s = np.concatenate([latencies for _, latencies in groups])
    model = BoostedTrees()
    model.fit_examples(Examples.build(features, latencies_s.tolist(), ["task"] * len(features)))
    held_out = [sum_structured(200, num, seed=10 + num) for num in (2, 3, 5)]
    scores = np.concatenate([model.score(group) for group, _ in held_out])
    assert rank_correlation(scores, 1 / np.concatenate([latencies for _, latencies in held_out])) > 0.9


def test_a_program_of_many_equal_statements_does_not_overshoot() -> None:
    rng = np.random.default_rng(0)
    column = rng.integers(0, 2, 100).astype(np.float32)
    features = np.broadcast_to(column[:, np.newaxis, np.newaxis], (100, 40, 2))
    model = BoostedTrees()
    model.fit_examples(Examples.build(list(features), (1.0 + column).tolist(), ["task"] * 100))
    np.testing.assert_allclose(model.score(features), 1 / (1.0 + column), atol=0.02)


def test_the_error_on_fast_programs_weighs_more() -> None:
    """Two groups of programs that no feature tells apart: the score goes to the one that weighs more."""
    features = [np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32)] * 50
    latencies_s = [1.0, 1.0, 10.0, 1.0] * 25
    weighted, even = BoostedTrees(), BoostedTrees(min_weight=1.0)
    for model in (weighted, even):
        model.fit_examples(Examples.build(features, latencies_s, ["task"] * 100))
    ambiguous = np.zeros((1, 1, 1), np.float32)
    assert even.score(ambiguous)[0] == pytest.approx((1.0 + 0.1) / 2, abs=0.02)
    assert weighted.score(ambiguous)[0] == pytest.approx((1.0 * 1.0 + 0.1 * 0.1) / 1.1, abs=0.02)


def test_failures_are_learned_to_be_bad() -> None:
    features, latencies_s = sum_structured(400, 3, seed=0)
    fails = features[:, :, 5].max(axis=1) == 7
    outcomes = [None if fail else latency for fail, latency in zip(fails, latencies_s.tolist(), strict=True)]
    model = BoostedTrees()
    model.fit_examples(Examples.build(list(features), outcomes, ["task"] * 400))
    scores = model.score(features)
    assert scores[fails].mean() < scores[~fails].mean() / 2


def test_an_update_approaches_a_fit_on_all_data() -> None:
    features, latencies_s = sum_structured(500, 3, seed=1)
    everything = sum_structured_examples(500)
    updated, fitted = BoostedTrees(), BoostedTrees()
    updated.fit_examples(everything.select(np.arange(420)))
    before = rank_correlation(updated.score(features), 1 / latencies_s)
    updated.update_examples(everything)
    assert updated.num_updates_ == 1
    fitted.fit_examples(everything)
    after = rank_correlation(updated.score(features), 1 / latencies_s)
    assert after > before
    assert after > rank_correlation(fitted.score(features), 1 / latencies_s) - 0.05


def test_an_update_starts_anew_when_the_data_has_outgrown_the_trees() -> None:
    features, _ = sum_structured(50, 3, seed=1)
    everything = sum_structured_examples(200)
    updated, fitted = BoostedTrees(), BoostedTrees()
    updated.fit_examples(everything.select(np.arange(100)))
    updated.update_examples(everything)
    fitted.fit_examples(everything)
    np.testing.assert_array_equal(updated.score(features), fitted.score(features))


def test_the_first_update_is_a_fit() -> None:
    features, _ = sum_structured(50, 3, seed=1)
    updated, fitted = BoostedTrees(), BoostedTrees()
    updated.update_examples(sum_structured_examples(100))
    fitted.fit_examples(sum_structured_examples(100))
    np.testing.assert_array_equal(updated.score(features), fitted.score(features))


def test_updates_without_new_data_do_not_add_trees_for_ever() -> None:
    examples = sum_structured_examples(50)
    model = BoostedTrees()
    for _ in range(20):
        model.update_examples(examples)
    assert model.forest_ is not None
    assert model.forest_.booster.num_boosted_rounds() <= 2 * model.num_trees


def test_an_update_of_much_data_takes_the_newest_and_a_sample() -> None:
    model = BoostedTrees(max_update_programs=100)
    chosen = model._sample(1000)
    assert len(np.unique(chosen)) == 100
    assert set(range(950, 1000)) <= set(chosen.tolist())
    examples = sum_structured_examples(1000)
    model.fit_examples(examples.select(np.arange(900)))
    model.update_examples(examples)
    features, latencies_s = sum_structured(500, 3, seed=1)
    assert rank_correlation(model.score(features), 1 / latencies_s) > 0.9


def test_the_number_of_features_is_that_of_training() -> None:
    model = BoostedTrees()
    model.fit_examples(sum_structured_examples(20))
    with pytest.raises(UsageError, match=f"has learned from {NUM_FEATURES} features, got 2; fit it anew"):
        model.score(np.zeros((1, 3, 2), np.float32))
    model = BoostedTrees(features="statements+hardware", num_trees=2)
    population, latencies_s = encoded(8, seed=0)
    model.fit(Dataset((Measured(population, latencies_s),)))
    with pytest.raises(UsageError, match="features, got 12; fit it anew"):
        model.score(sum_structured(2, 3, seed=1)[0])


def test_an_empty_dataset_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one program, got no examples"):
        BoostedTrees().fit_examples(Examples.build([], [], []))


def test_an_interrupt_leaves_what_was_learned_before(monkeypatch: pytest.MonkeyPatch) -> None:
    features, _ = sum_structured(50, 3, seed=1)
    model = BoostedTrees()
    model.fit_examples(sum_structured_examples(100))
    before = model.score(features)
    more = sum_structured_examples(110, seed=2)
    more = replace(more, labels=more.labels / 2)  # with another base

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Forest, "boosted", interrupted)
    for learn in (model.fit_examples, model.update_examples, model.fine_tune_examples):
        with pytest.raises(KeyboardInterrupt):
            learn(more)
        np.testing.assert_array_equal(model.score(features), before)
    new = BoostedTrees()
    with pytest.raises(KeyboardInterrupt):
        new.fit_examples(more)
    assert not new.is_fitted


def test_where_nothing_varied_at_first_fine_tuning_begins_with_what_does(tmp_path: Path) -> None:
    features, latencies_s = sum_structured(200, 1, seed=1)
    model = BoostedTrees()
    model.fit_examples(Examples.build([features[0]] * 4, [1.0, 2.0, 3.0, 4.0], ["task"] * 4))
    assert np.ptp(model.score(features)) == 0
    model.save(tmp_path / "model.npz")
    for one in (model, BoostedTrees.load(tmp_path / "model.npz")):
        one.fine_tune_examples(sum_structured_examples(300, num_statements=1))
        assert rank_correlation(one.score(features), 1 / latencies_s) > 0.5


def test_a_file_whose_trees_are_read_otherwise_is_refused(tmp_path: Path) -> None:
    model = BoostedTrees()
    model.fit_examples(sum_structured_examples(20))
    model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(tmp_path / "model.npz", allow_pickle=False, **{**arrays, "probe": arrays["probe"] + 0.5})
    with pytest.raises(UsageError, match="use the version that wrote them or a newer one"):
        BoostedTrees.load(tmp_path / "model.npz")


def test_importing_the_package_does_not_load_xgboost() -> None:
    program = "import sys, tilewright.cost_model; print('xgboost' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_learning_and_scoring_take_milliseconds() -> None:
    """An order of magnitude above what they take, so that only a real loss of speed fails."""
    rng = np.random.default_rng(0)
    features = rng.integers(0, 16, (512, 4, 180)).astype(np.float32)
    examples = Examples.build(list(features), (1.0 + features[:, :, :5].sum(axis=(1, 2))).tolist(), ["task"] * 512)
    model = BoostedTrees()
    model.fit_examples(examples)
    start = time.process_time()
    model.fit_examples(examples)
    assert time.process_time() - start < 1.0
    population = np.tile(features, (4, 1, 1))
    start = time.process_time()
    model.score(population)
    assert time.process_time() - start < 0.1


SKETCH = derive(parse("gmm:64x96x128"), SpaceOptions(Target.parse("llvm -mcpu=haswell -num-cores=2"), threads=2))[0]
FORMS = [{"objective": "squared"}, {"objective": "rank"}]


def many_tasks(num_tasks: int, seed: int) -> tuple[list[NDArray[np.float32]], NDArray[np.float64], list[int]]:
    """Programs of tasks whose latencies are of very different sizes."""
    found = [sum_structured(40, 2 + task % 3, seed=seed + task) for task in range(num_tasks)]
    features = [program for programs, _ in found for program in programs]
    latencies_s = np.concatenate([10.0 ** (task % 5) * mine for task, (_, mine) in enumerate(found)])
    return features, latencies_s, [task for task in range(num_tasks) for _ in range(40)]


@pytest.mark.parametrize("options", FORMS)
def test_each_objective_ranks_tasks_that_it_has_not_seen(options: dict[str, Any]) -> None:
    model = BoostedTrees(**options)
    features, latencies_s, tasks = many_tasks(40, seed=0)
    model.fit_examples(Examples.build(features, latencies_s.tolist(), tasks))
    for num_statements in (2, 3, 4):
        values, mine = sum_structured(200, num_statements, seed=1000)
        assert pairwise_accuracy(model.score(values), 1 / mine) > 0.85


def encoded(num: int, seed: int) -> tuple[Population, NDArray[np.float64]]:
    """Programs that take what the analytical model says, and five times as long if few accumulators are in flight."""
    population = SKETCH.sample(np.random.default_rng(seed), num)
    cycles = np.exp(-AnalyticalModel().predict(population))
    accumulators = StatementEncoder().encode(population)[:, :, FEATURE_NAMES.index("accumulators")].max(axis=1)
    return population, np.where(accumulators < np.median(accumulators), 5 * cycles, cycles) * 1e-9


@pytest.mark.parametrize("objective", ["squared", "rank"])
def test_a_residual_learns_what_the_analytical_model_gets_wrong(objective: str) -> None:
    population, latencies_s = encoded(300, seed=0)
    model = BoostedTrees(objective=objective, residual=True)
    model.fit(Dataset((Measured(population, latencies_s),)))
    assert model.slope_ > 0
    held_out, truth_s = encoded(300, seed=1)
    analytical = pairwise_accuracy(AnalyticalModel().predict(held_out), 1 / truth_s)
    assert pairwise_accuracy(model.predict(held_out), 1 / truth_s) > (1 + analytical) / 2


@pytest.mark.parametrize("objective", ["squared", "rank"])
def test_a_residual_on_what_is_right_already_changes_no_order(objective: str) -> None:
    population, _ = encoded(100, seed=0)
    truth_s = np.exp(-AnalyticalModel().predict(population)) * 1e-9
    model = BoostedTrees(objective=objective, residual=True, num_trees=4)
    model.fit(Dataset((Measured(population, truth_s),)))
    assert pairwise_accuracy(model.predict(population), 1 / truth_s) > 0.98


def test_a_residual_is_updated_and_saved(tmp_path: Path) -> None:
    population, latencies_s = encoded(100, seed=0)
    model = BoostedTrees(objective="rank", residual=True)
    model.fit(Dataset((Measured(population[:90], latencies_s[:90]),)))
    model.update(Dataset((Measured(population, latencies_s),)))
    assert model.num_updates_ == 1
    model.save(tmp_path / "model")
    loaded = BoostedTrees.load(tmp_path / "model")
    assert loaded.slope_ == model.slope_
    np.testing.assert_array_equal(loaded.predict(population), model.predict(population))
    loaded.residual = False
    with pytest.raises(UsageError, match="go on with that, got residual=false; leave it true"):
        loaded.fine_tune(Dataset((Measured(population, latencies_s),)))
    header, arrays = read_file(tmp_path / "model")
    del arrays["slope"]
    write_arrays(tmp_path / "model", header, arrays)
    with pytest.raises(UsageError, match="what boosted-trees has learned is not in it .'slope'"):
        BoostedTrees.load(tmp_path / "model")


def test_an_unknown_objective_is_refused() -> None:
    with pytest.raises(UsageError, match="objective of boosted trees is one of squared, rank, got 'mse'"):
        BoostedTrees(objective="mse").fit_examples(sum_structured_examples(10))


def test_a_file_from_before_there_were_residuals_is_read(tmp_path: Path) -> None:
    model = BoostedTrees()
    model.fit_examples(sum_structured_examples(30))
    model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = {name: file[name] for name in file.files if name != "slope"}
    header = json.loads(arrays["header"].tobytes())
    header["options"] = {k: v for k, v in header["options"].items() if k not in ("objective", "residual")}
    del header["tasks"]
    np.savez(tmp_path / "model.npz", **{**arrays, "header": text_array(json.dumps(header))})
    features, _ = sum_structured(20, 3, seed=1)
    np.testing.assert_array_equal(BoostedTrees.load(tmp_path / "model.npz").score(features), model.score(features))


def made_up(workload: str, seed: int, num: int = 48) -> Dataset:
    """Programs of a task whose latencies the analytical model makes up."""
    options = SpaceOptions(Target.parse("llvm -mcpu=haswell -num-cores=2"), threads=2)
    populations = [s.sample(np.random.default_rng(seed), num) for s in derive(parse(workload), options)[:3]]
    return Dataset(tuple(Measured(p, np.exp(-AnalyticalModel().predict(p)) * 1e-9) for p in populations))


def accuracy_on(model: CostModel, dataset: Dataset) -> float:
    scores = np.concatenate([model.predict(group.population) for group in dataset.measured])
    return pairwise_accuracy(scores, 1 / np.concatenate([group.latencies_s for group in dataset.groups]))


@pytest.mark.parametrize("objective", ["squared", "rank"])
@pytest.mark.parametrize("features", ["statements", "curves", "loop-context", "knobs", "primitives-flat"])
def test_trees_learn_a_task_from_any_features(features: str, objective: str) -> None:
    model = create("boosted-trees", features=features, objective=objective, seed=2)
    model.fit(made_up("gmm:64x96x48", 0))
    assert accuracy_on(model, made_up("gmm:64x96x48", 1)) > 0.65


def test_curves_carry_over_to_another_operator() -> None:
    model = BoostedTrees(features="curves", objective="rank")
    model.fit(Dataset(tuple(g for n in (32, 48, 64) for g in made_up(f"c2d:1x14x14x{n},{n},3x3,s1,p1", n).groups)))
    assert accuracy_on(model, made_up("gmm:64x96x48", 1)) > 0.65


def test_features_are_those_that_all_sketches_have(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="those of choices differ from sketch to sketch; choose others, such as knobs"):
        create("boosted-trees", features="choices")
    with pytest.raises(UsageError, match="an encoder is one of statements, .* got 'magic'"):
        create("boosted-trees", features="magic")
    with pytest.raises(UsageError, match="read the features statements, got 'curves'; leave out features or residual"):
        BoostedTrees(features="curves", residual=True).fit(made_up("gmm:64x96x48", 0))
    model = BoostedTrees(features="curves", num_trees=2)
    model.fit(made_up("gmm:64x96x48", 0))
    model.save(tmp_path / "model.npz")
    assert BoostedTrees.load(tmp_path / "model.npz").encoder == create_encoder("curves")
    with pytest.raises(UsageError, match="has learned from 192 features, got 197; fit it anew"):
        model.score(StatementEncoder().encode(made_up("gmm:64x96x48", 0).measured[0].population))


def test_a_file_finds_its_columns_by_name_or_as_earlier_files_by_number(tmp_path: Path) -> None:
    population = derive(parse("gmm:32x32x32"), SpaceOptions(Target.parse("llvm -mcpu=haswell")))[0].sample(
        np.random.default_rng(0), 30
    )
    model = BoostedTrees(num_trees=4)
    model.fit(Dataset((Measured(population, np.linspace(1.0, 2.0, 30)),)))
    assert model.forest_ is not None
    path = tmp_path / "model.npz"
    model.save(path)
    header, arrays = read_file(path)
    names = names_of(arrays.pop("column_names"))
    assert names == tuple(FEATURE_NAMES[column] for column in model.forest_.columns)
    write_arrays(path, header, arrays | {"columns": model.forest_.columns})
    np.testing.assert_array_equal(BoostedTrees.load(path).predict(population), model.predict(population))
    write_arrays(path, header, arrays | {"column_names": names_array(["of_another_time", *names[1:]])})
    with pytest.raises(UsageError, match="'of_another_time'.* none of the 197 .* train the model again"):
        BoostedTrees.load(path)
