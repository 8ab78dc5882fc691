"""A global model and a local one: what the local one learns, when it is believed, and what the file holds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import te
from tilewright.cost_model import (
    AnalyticalModel,
    BoostedTrees,
    CostModel,
    Dataset,
    Ensemble,
    Examples,
    Measured,
    ResidualModel,
    find,
    load,
    pairwise_accuracy,
)
from tilewright.cost_model.base import read_file, write_arrays
from tilewright.cost_model.views import View, joined_encoder
from tilewright.errors import UsageError
from tilewright.features import create_encoder
from tilewright.space import Population, derive
from tilewright.te import Task
from tilewright.testing.cost_model_checks import EncodedCostModelChecks
from tilewright.testing.encoder_checks import OPTIONS, sketches_of

Floats = NDArray[np.float64]


class TestResidualOfTheAnalyticalModel(EncodedCostModelChecks):
    def make(self) -> CostModel:
        return ResidualModel()


class TestResidualOfTrees(EncodedCostModelChecks):
    """Both models read the same."""

    def make(self) -> CostModel:
        return ResidualModel.over(known_trees())


def known_trees() -> BoostedTrees:
    trees = BoostedTrees(num_trees=4)
    trees.fit(Dataset((Measured(programs(20, seed=5), np.linspace(1.0, 2.0, 20)),)))
    return trees


def programs(num: int, seed: int = 0) -> Population:
    sketch = max(sketches_of("gemm"), key=lambda sketch: sketch.cardinality)  # the first one has hardly any choice
    return sketch.sample(np.random.default_rng(seed), num)


def log_cycles(population: Population) -> Floats:
    return -AnalyticalModel().predict(population)


def hidden(population: Population) -> Floats:
    """Something that the analytical model does not know of."""
    column = create_encoder("statements").encode(population)[:, :, 3:].sum(axis=(1, 2))
    order: Floats = np.argsort(np.argsort(column)) / len(column)
    return order


def measured(population: Population, latencies_s: Floats) -> Dataset:
    return Dataset((Measured(population, latencies_s),))


def test_without_data_the_ranking_is_that_of_the_global_model() -> None:
    population = programs(40)
    np.testing.assert_allclose(ResidualModel().predict(population), AnalyticalModel().predict(population))


@pytest.mark.parametrize("num", [1, 4, 16])
def test_where_the_global_model_is_right_little_data_does_no_harm(num: int) -> None:
    population, known = programs(200), programs(num, seed=1)
    noise = np.random.default_rng(0).normal(size=num) * 0.02
    model = ResidualModel()
    model.update(measured(known, np.exp(log_cycles(known) + noise)))
    truth = -log_cycles(population)
    assert pairwise_accuracy(model.predict(population), truth) > 0.97


def test_what_the_global_model_gets_wrong_is_learned() -> None:
    population, known = programs(200), programs(64, seed=1)
    model = ResidualModel()
    model.update(measured(known, np.exp(log_cycles(known) + hidden(known))))
    truth = -log_cycles(population) - hidden(population)
    before = pairwise_accuracy(AnalyticalModel().predict(population), truth)
    assert model.share_ > 0
    assert pairwise_accuracy(model.predict(population), truth) > before + 0.02


def test_failures_only_and_equal_latencies_teach_nothing() -> None:
    population, known = programs(50), programs(16, seed=1)
    for latency_s in (np.inf, 1.0):
        model = ResidualModel()
        model.update(measured(known, np.full(16, latency_s)))
        scores = model.predict(population)
        assert pairwise_accuracy(scores, AnalyticalModel().predict(population)) == 1.0


def test_copies_share_the_global_model_and_learn_for_themselves() -> None:
    known = programs(64, seed=1)
    model = ResidualModel.over(known_trees())
    other = copy.deepcopy(model)
    other.update(measured(known, np.exp(hidden(known))))
    assert other.global_ is model.global_
    assert (model.share_, model.local_) == (0.0, None)
    assert other.options == model.options


def test_the_file_holds_both_models(tmp_path: Path) -> None:
    population, known = programs(30), programs(64, seed=1)
    model = ResidualModel.over(known_trees())
    model.update(measured(known, np.exp(log_cycles(known) + hidden(known))))
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert isinstance(loaded, ResidualModel)
    assert loaded.share_ == model.share_ > 0
    np.testing.assert_array_equal(loaded.predict(population), model.predict(population))


@pytest.mark.parametrize("shares", [(np.nan, 0.5), (1.0, np.inf)])
def test_a_file_whose_scores_would_be_no_numbers_is_refused(shares: tuple[float, float], tmp_path: Path) -> None:
    model = ResidualModel()
    model.slope_, model.share_ = shares
    model.save(tmp_path / "model.npz")
    with pytest.raises(UsageError, match="scores are multiplied by finite numbers"):
        load(tmp_path / "model.npz")


def test_a_global_model_that_knows_nothing_is_refused() -> None:
    model = ResidualModel(global_model="boosted-trees")
    assert not model.is_fitted
    with pytest.raises(UsageError, match="global model boosted-trees of a residual has learned nothing yet"):
        model.fit(measured(programs(4), np.ones(4)))
    with pytest.raises(UsageError, match="those of choices differ from sketch to sketch"):
        _ = ResidualModel(global_model="random").encoder


def without_knobs() -> Population:
    """Nothing is decided of a program of one element: what reads its schedule has zeros alone."""
    A = te.placeholder((1,), name="A")
    task = Task([A], te.compute((1,), lambda i: A[i] * 2.0, name="B"))
    (sketch,) = derive(task, OPTIONS)
    assert not sketch.steps
    return Population(sketch, np.zeros((5, 0), np.int64))


@pytest.mark.parametrize("population", [programs(5), without_knobs()], ids=["gemm", "without knobs"])
@pytest.mark.parametrize(
    "names",
    [
        ("estimate+hierarchy", "statements+hierarchy"),
        ("knobs", "statements"),
        ("primitives-published", "hardware+primitives-flat", "knobs+primitives"),
    ],
)
def test_views_are_what_each_encoder_gives(names: tuple[str, ...], population: Population) -> None:
    encoders = [create_encoder(name) for name in names]
    joined = joined_encoder(encoders)
    values = joined.encode(population)
    rows = Examples.of_groups([values, values[:2]], [np.ones(5), np.ones(2)], [0, 1])
    for encoder in encoders:
        view = View.of(encoder, joined)
        np.testing.assert_array_equal(view.values(values), encoder.encode(population))
        np.testing.assert_array_equal(view.examples(rows).padded(np.arange(5))[0], encoder.encode(population))
    assert joined_encoder(encoders[:1] * 2) == encoders[0]


def two_tasks(hidden_in: tuple[bool, bool]) -> Dataset:
    """Programs of two sketches, measured as those of two tasks; what is hidden is there in some of them."""
    groups = []
    for number, is_hidden in enumerate(hidden_in):
        own = programs(40, seed=number)
        latencies = np.exp(log_cycles(own) + (hidden(own) if is_hidden else 0.0))
        groups.append(Measured(own, latencies, context=f"cold-{1 + number}M"))
    return Dataset(tuple(groups))


def test_what_holds_in_one_task_alone_is_believed_less_where_tasks_are_left_out() -> None:
    shares = {}
    for hidden_in in ((True, True), (True, False)):
        model = ResidualModel(folds_of="tasks")
        model.fit(two_tasks(hidden_in))
        shares[hidden_in] = model.share_
    assert shares[True, True] > 2 * shares[True, False]
    assert 0 < shares[True, True] <= 2 / 3


def test_a_single_task_is_left_out_in_parts_and_believed_by_half() -> None:
    known = programs(64, seed=1)
    dataset = measured(known, np.exp(log_cycles(known) + hidden(known)))
    by_tasks, by_programs = ResidualModel(folds_of="tasks"), ResidualModel()
    by_tasks.fit(dataset)
    by_programs.fit(dataset)
    assert by_tasks.share_ == pytest.approx(by_programs.share_ / 2)
    with pytest.raises(UsageError, match="folds_of of a residual is programs or tasks, got 'rows'"):
        ResidualModel(folds_of="rows").fit(dataset)


def test_residuals_can_be_stacked_and_saved(tmp_path: Path) -> None:
    """A model of many tasks, what it gets wrong of others, and what both get wrong of one."""
    known = ResidualModel.over(known_trees(), folds_of="tasks")
    known.fit(two_tasks((True, True)))
    model = ResidualModel(seed=7, prior_programs=4.0).over_another(known)
    assert (model.seed, model.prior_programs, model.base) == (7, 4.0, known)
    own = programs(64, seed=9)
    model.fit(measured(own, np.exp(log_cycles(own) + hidden(own))))
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").predict(own), model.predict(own))


def test_a_saved_residual_that_knows_other_tasks_keeps_that_while_it_adapts(tmp_path: Path) -> None:
    known = ResidualModel.over(known_trees(), folds_of="tasks")
    known.fit(two_tasks((True, True)))
    known.save(tmp_path / "model.npz")
    own = programs(64, seed=9)
    model = find(tmp_path / "model.npz", seed=3)
    assert isinstance(model, ResidualModel)
    before = model.predict(own)
    np.testing.assert_array_equal(np.argsort(before), np.argsort(known.predict(own)))
    model.update(measured(own, np.exp(log_cycles(own) - hidden(own))))
    assert not np.array_equal(model.predict(own), before)
    np.testing.assert_array_equal(model.base.predict(own), known.predict(own))


def test_a_local_model_without_arrays_comes_back_from_its_file(tmp_path: Path) -> None:
    """The analytical one has nothing to learn, and counts all the same."""
    known = programs(64, seed=1)
    model = ResidualModel.over(known_trees(), local_model="analytical", local_options={})
    model.fit(measured(known, np.exp(log_cycles(known))))
    assert model.share_ > 0
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").predict(known), model.predict(known))


@pytest.mark.parametrize("part", ["global", "local"])
def test_a_file_without_one_of_both_models_is_refused(part: str, tmp_path: Path) -> None:
    known = programs(64, seed=1)
    model = ResidualModel.over(known_trees())
    model.fit(measured(known, np.exp(log_cycles(known) + hidden(known))))
    model.save(tmp_path / "model.npz")
    header, arrays = read_file(tmp_path / "model.npz")
    kept = {name: array for name, array in arrays.items() if not name.startswith(f"{part}:")}
    write_arrays(tmp_path / "model.npz", header, kept)
    with pytest.raises(UsageError, match=f"the {part} model boosted-trees has learned nothing"):
        load(tmp_path / "model.npz")


def test_an_interrupt_leaves_what_was_learned_before(monkeypatch: pytest.MonkeyPatch) -> None:
    known = programs(64, seed=1)
    model = ResidualModel()
    model.fit(measured(known, np.exp(log_cycles(known) + hidden(known))))
    before = model.predict(known)
    fitted_local, num_fitted = ResidualModel._fitted_local, 0

    def interrupted(self: ResidualModel, local: Examples) -> CostModel:
        nonlocal num_fitted
        num_fitted += 1
        if num_fitted > self.num_folds:  # the last one, after those of parts of the data
            raise KeyboardInterrupt
        return fitted_local(self, local)

    monkeypatch.setattr(ResidualModel, "_fitted_local", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(measured(known, np.exp(2 * log_cycles(known) + hidden(known))))
    np.testing.assert_array_equal(model.predict(known), before)


def sketches_with_as_many_rows() -> list[Population]:
    """Of both kinds of rows together, that is: 10 primitives of a statement, 8 of three."""
    sketches = sketches_of("batched_matmul")[2], sketches_of("quantized")[0]
    populations = [sketch.sample(np.random.default_rng(0), 12) for sketch in sketches]
    rows = [[create_encoder(name).encode(p).shape[1] for name in ("primitives", "statements")] for p in populations]
    assert rows == [[10, 1], [8, 3]]
    return populations


@pytest.mark.parametrize(
    "make",
    [
        lambda: ResidualModel.over(BoostedTrees(features="primitives", num_trees=4)),
        lambda: Ensemble(members=["boosted-trees:features=primitives,num_trees=4", "boosted-trees:num_trees=4"]),
        lambda: BoostedTrees(features="primitives+hardware+statements", num_trees=4),
    ],
    ids=["residual", "ensemble", "trees"],
)
def test_programs_of_different_sketches_score_together_what_they_score_alone(make: Callable[[], CostModel]) -> None:
    """As a model scores them that learns over this one, whose rows of another sketch they were taken for."""
    dataset = Dataset(
        tuple(Measured(own, np.exp(log_cycles(own) + hidden(own))) for own in sketches_with_as_many_rows())
    )
    model = make()
    if isinstance(model, ResidualModel):
        model.base.fit(dataset)
    model.fit(dataset)
    together = model.score_examples(dataset.encoded(model.encoder))
    alone = np.concatenate([model.predict(group.population) for group in dataset.measured])
    np.testing.assert_allclose(together, alone, rtol=1e-6)
