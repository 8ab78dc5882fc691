"""Trees that correct the analytical model: where they begin, what they learn, and what changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import UsageError
from tilewright.cost_model import AnalyticalModel, Examples, FactorTrees, factor_trees, load, pairwise_accuracy
from tilewright.cost_model.array_file import names_array, names_of, text_array
from tilewright.cost_model.base import read_file, write_arrays
from tilewright.cost_model.forest import Forest
from tilewright.features import ESTIMATE, HardwareEncoder
from tilewright.testing.encoder_checks import sketches_of

SMALL: dict[str, Any] = {"num_rounds": 20, "trees_in_round": 2, "min_child_weight": 0.01, "column_share": 1.0}


def programs(num: int, kind: str = "softmax", seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Encoded programs, and the analytical model's scores of them."""
    population = sketches_of(kind)[0].sample(np.random.default_rng(seed), num)
    return FactorTrees().encoder.encode(population), AnalyticalModel().predict(population)


def examples(values: NDArray[np.float32], scores: NDArray[np.float64]) -> Examples:
    return Examples.of_groups([values], [np.exp(-scores) * 1e-9], ["task"])


def test_without_trees_it_is_the_analytical_model() -> None:
    values, known = programs(8)
    model = FactorTrees()
    model.fit_examples(examples(values[:1].repeat(3, axis=0), known[:1].repeat(3)))  # nothing varies
    np.testing.assert_allclose(model.score(values), known, rtol=1e-6)


def planted(num: int) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """Programs, the analytical scores, and scores that differ by a factor where a column of a statement is large."""
    values, known = programs(num, "conv1d")
    heaviest = int(np.argmax(values[:, :, FactorTrees().encoder.columns.index(f"statements.{ESTIMATE}")].mean(axis=0)))
    column = int(np.argmax(np.minimum(np.ptp(values[:, heaviest], axis=0), 3)))
    is_worse = values[:, heaviest, column] > np.median(values[:, heaviest, column])
    return values, known, known - 2.0 * is_worse


def test_it_learns_what_the_analytical_model_gets_wrong() -> None:
    values, known, actual = planted(300)
    model = FactorTrees(**SMALL)
    model.fit_examples(examples(values[:200], actual[:200]))
    rated = [pairwise_accuracy(scores[200:], np.exp(actual[200:])) for scores in (model.score(values), known)]
    assert rated[0] > 0.95
    assert rated[0] > rated[1] + 0.03


def test_rows_of_no_statement_change_nothing() -> None:
    values, known = programs(40)
    model = FactorTrees(**SMALL)
    model.fit_examples(examples(values, known + np.random.default_rng(0).normal(0, 0.3, len(known))))
    padded = np.pad(values, ((0, 0), (0, 3), (0, 0)))
    np.testing.assert_array_equal(model.score(padded), model.score(values))
    np.testing.assert_allclose(model.score(values[:, ::-1]), model.score(values), rtol=1e-6)


def test_the_last_bits_of_columns_decide_nothing() -> None:
    values, known = programs(60)
    model = FactorTrees(**SMALL)
    model.fit_examples(examples(values, known + np.random.default_rng(0).normal(0, 0.3, len(known))))
    nudged = np.nextafter(values, np.float32(np.inf))
    nudged[values == 0] = 0
    np.testing.assert_allclose(model.score(nudged), model.score(values), rtol=1e-5)


def test_it_tells_devices_apart() -> None:
    values, known = programs(120)
    begin = len(FactorTrees().encoder.columns) - len(HardwareEncoder().columns)
    other = values.copy()
    other[:, -1, begin:] += 1.0
    column = int(np.argmax(np.minimum(np.ptp(values[:, 0], axis=0), 3)))
    bonus = 0.7 * (values[:, 0, column] > np.median(values[:, 0, column]))
    both = Examples.of_groups(
        [values, other], [np.exp(-known - bonus) * 1e-9, np.exp(-known + bonus) * 1e-9], ["here", "there"]
    )
    model = FactorTrees(**SMALL | {"num_rounds": 60})
    model.fit_examples(both)
    gap = model.score(values) - model.score(other)
    assert np.corrcoef(gap, bonus)[0, 1] > 0.5


def test_on_a_device_like_none_that_it_knows_it_is_nearer_to_the_analytical_model() -> None:
    values, known = programs(80)
    model = FactorTrees(**SMALL)
    model.fit_examples(examples(values, known + np.random.default_rng(0).normal(0, 0.5, len(known))))
    assert np.abs(model.score(values) - known).max() > 0.05
    other = values.copy()
    other[:, -1, model.encoder.columns.index("hardware.vector_bits")] += 2.0
    model.trust = 0.0
    np.testing.assert_allclose(model.score(other), known, rtol=1e-6)
    model.trust = 1.0
    np.testing.assert_allclose(model.score(other), model.score(values), rtol=1e-6)


def test_where_multiply_adds_are_new_to_it_it_is_the_analytical_model() -> None:
    values, known = programs(80)
    model = FactorTrees(**SMALL)
    model.fit_examples(examples(values, known + np.random.default_rng(0).normal(0, 0.5, len(known))))
    other = values.copy()
    other[:, -1, model.encoder.columns.index("hardware.has_fma")] = 0.0
    np.testing.assert_allclose(model.score(other), known, rtol=1e-6)


@pytest.mark.parametrize("num", [1, 2])
def test_few_programs_and_failures_are_enough_to_go_on(num: int) -> None:
    values, known = programs(num)
    data = examples(values, known)
    model = FactorTrees(**SMALL)
    model.fit_examples(replace(data, labels=np.zeros(num)))
    np.testing.assert_allclose(model.score(values), known, rtol=1e-6)


def test_an_interrupt_leaves_what_was_learned_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which devices, too: on others the trees are trusted less."""
    values, known = programs(80)
    model = FactorTrees(**SMALL)
    model.fit_examples(examples(values, known + np.random.default_rng(0).normal(0, 0.5, len(known))))
    other = values.copy()
    other[:, -1, model.encoder.columns.index("hardware.vector_bits")] += 2.0
    before = model.score(other)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Forest, "boosted", interrupted)
    for learn in (model.fit_examples, model.fine_tune_examples):
        with pytest.raises(KeyboardInterrupt):
            learn(examples(other, known))
        np.testing.assert_array_equal(model.score(other), before)


# --- the file: columns have names ---


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    values, known = programs(60)
    model = FactorTrees(**SMALL | {"num_rounds": 3})
    model.fit_examples(examples(values, known + np.random.default_rng(0).normal(0, 0.3, len(known))))
    path = tmp_path_factory.mktemp("model") / "model.npz"
    model.save(path)
    return path


def changed(saved: Path, path: Path, **changes: NDArray[Any] | None) -> Path:
    """The file with other arrays, or without those that are None."""
    header, arrays = read_file(saved)
    write_arrays(path, header, {name: array for name, array in (arrays | changes).items() if array is not None})
    return path


def names_in(saved: Path, array: str = "column_names") -> list[str]:
    return list(names_of(read_file(saved)[1][array]))


def trees_over(saved: Path, order: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The trees of the file, of columns in another order."""
    content = json.loads(read_file(saved)[1]["trees_json"].tobytes())
    place = np.argsort(order)
    for tree in content["learner"]["gradient_booster"]["model"]["trees"]:
        tree["split_indices"] = place[tree["split_indices"]].tolist()
    return text_array(json.dumps(content))


def test_the_columns_of_a_file_may_be_in_any_order(saved: Path, tmp_path: Path) -> None:
    names, devices = names_in(saved), names_in(saved, "hardware_names")
    order = np.random.default_rng(0).permutation(len(names))
    path = changed(
        saved,
        tmp_path / "model.npz",
        column_names=names_array([names[number] for number in order]),
        trees_json=trees_over(saved, order),
        hardware_names=names_array(devices[::-1]),
        hardware=read_file(saved)[1]["hardware"][:, ::-1],
    )
    values, _ = programs(20, seed=1)
    np.testing.assert_array_equal(FactorTrees.load(path).score(values), FactorTrees.load(saved).score(values))
    others = changed(saved, path, column_names=names_array(names[::-1]))
    assert not np.array_equal(FactorTrees.load(others).score(values), FactorTrees.load(saved).score(values))


def test_a_file_without_names_has_the_columns_that_there_were_before(saved: Path, tmp_path: Path) -> None:
    before = [name for name in factor_trees._COLUMNS if name != "program.num_algorithm"]
    assert len(before) == 261, "name a column that files without names do not know in _UNNAMED"
    numbers = np.array([before.index(name) for name in names_in(saved)])
    path = changed(saved, tmp_path / "model.npz", column_names=None, columns=numbers, hardware_names=None)
    values, _ = programs(20, seed=1)
    np.testing.assert_array_equal(FactorTrees.load(path).score(values), FactorTrees.load(saved).score(values))


def test_a_column_that_programs_do_not_have_any_more_is_named(saved: Path, tmp_path: Path) -> None:
    path = changed(saved, tmp_path / "model.npz", column_names=names_array(["program.gone", *names_in(saved)[1:]]))
    with pytest.raises(UsageError, match=r"cannot be used: .*'program\.gone'.* none of the 262 .* train the model"):
        load(path)


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda names: names_array(names[1:]),
        lambda names: names_array([*names, "own.share"]),
        lambda names: names_array([*names[1:], names[1]]),
        lambda names: names_array([names[0] * 100, *names[1:]]),
        lambda names: names_array([]),
        lambda names: text_array(json.dumps({"names": names})),
        lambda names: text_array(json.dumps([1, *names[1:]])),
        lambda names: text_array("[" * 100_000),
        lambda names: np.array([255, 254], np.uint8),
        lambda names: np.zeros(3),
    ],
)
@pytest.mark.parametrize("array", ["column_names", "hardware_names"])
def test_names_that_are_none_are_refused(
    saved: Path, tmp_path: Path, array: str, spoiled: Callable[[list[str]], NDArray[Any]]
) -> None:
    with pytest.raises(UsageError):
        load(changed(saved, tmp_path / "model.npz", **{array: spoiled(names_in(saved, array))}))
