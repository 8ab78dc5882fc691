"""Training is decided by data, options and seed; it goes on after an interruption; it stops early."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tilewright import UsageError
from tilewright.cost_model import Examples
from tilewright.cost_model.array_file import text_array
from tilewright.cost_model.neural import Mlp
from tilewright.cost_model.neural.training import Epoch, column_scale, held_out
from tilewright.testing.cost_model_checks import sum_structured


def examples_of(num_subjects: int, num: int = 12, seed: int = 0) -> Examples:
    found = [sum_structured(num, 2 + subject % 3, seed + subject) for subject in range(num_subjects)]
    features = [rows for values, _ in found for rows in values]
    latencies_s = np.concatenate([latencies_s for _, latencies_s in found])
    subjects = np.repeat(np.arange(num_subjects), num)
    return Examples.build(features, latencies_s.tolist(), subjects.tolist())


def make(**options: object) -> Mlp:
    return Mlp(**{"width": 8, "epochs": 4, "batch_size": 32, "seed": 1} | options)  # type: ignore[arg-type]


def weights_of(model: Mlp) -> dict[str, list[float]]:
    assert model.network_ is not None
    return {name: array.reshape(-1).tolist() for name, array in model.network_.weights.items()}


class InterruptError(Exception):
    """As by Ctrl-C."""


def interrupt_after(epoch: int) -> Callable[[Epoch], None]:
    def on_epoch(done: Epoch) -> None:
        if done.number == epoch:
            raise InterruptError

    return on_epoch


@pytest.mark.parametrize("loss", ["rank", "rank-mixed", "mse"])
def test_the_same_seed_gives_the_same_weights(loss: str) -> None:
    models = [make(loss=loss, seed=seed) for seed in (1, 1, 2)]
    for model in models:
        model.fit_examples(examples_of(8))
    first, same, other = map(weights_of, models)
    assert first == same != other


@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_training_ends_as_one_that_was_not(after: int, tmp_path: Path) -> None:
    examples = examples_of(12)
    whole, torn = make(epochs=6), make(epochs=6)
    whole.fit_examples(examples)
    with pytest.raises(InterruptError):
        torn.fit_examples(examples, checkpoint=tmp_path / "c.npz", on_epoch=interrupt_after(after))
    assert not torn.is_fitted
    epochs: list[Epoch] = []
    torn.fit_examples(examples, checkpoint=tmp_path / "c.npz", on_epoch=epochs.append)
    assert [epoch.number for epoch in epochs] == list(range(after + 1, 7))
    assert weights_of(torn) == weights_of(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["c.npz"]


def test_a_training_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    examples = examples_of(8)
    epochs: list[Epoch] = []
    first, again = make(), make()
    first.fit_examples(examples, checkpoint=tmp_path / "c.npz")
    again.fit_examples(examples, checkpoint=tmp_path / "c.npz", on_epoch=epochs.append)
    assert epochs == []
    assert weights_of(again) == weights_of(first)


@pytest.mark.parametrize("change", [{"seed": 2}, {"width": 4}, {"loss": "mse"}, {"learning_rate": 1e-2}])
def test_a_checkpoint_of_other_options_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    make().fit_examples(examples_of(3), checkpoint=tmp_path / "c.npz")
    with pytest.raises(UsageError, match="same data, options and model, and .* is of others; remove it"):
        make(**change).fit_examples(examples_of(3), checkpoint=tmp_path / "c.npz")


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    make().fit_examples(examples_of(3), checkpoint=tmp_path / "c.npz")
    with pytest.raises(UsageError, match="same data, options and model"):
        make().fit_examples(examples_of(3, seed=1), checkpoint=tmp_path / "c.npz")


def test_a_broken_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    make().fit_examples(examples_of(3), checkpoint=path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UsageError, match="is not the file of the checkpoint of a training: .*; remove it"):
        make().fit_examples(examples_of(3), checkpoint=path)


@pytest.mark.parametrize(
    ("entries", "arrays", "message"),
    [
        ({"epoch": "two"}, {}, "counts such as epoch, got .*'epoch': 'two'"),
        ({"epoch": -1}, {}, "counts such as epoch, got .*'epoch': -1"),
        ({"num_steps": None}, {}, "counts such as epoch"),
        ({"best_loss": "least"}, {}, "the best_loss of a checkpoint is a number or null, got 'least'"),
        ({}, {"weights/mean": np.zeros(3, np.float32)}, "has the weights of the network"),
        ({}, {"second_moments/more": np.zeros(3, np.float32)}, "has the weights of the network"),
        ({}, {"more": np.zeros(3, np.float32)}, "has the weights of the network"),
    ],
)
def test_a_checkpoint_that_was_tampered_with_is_refused(
    entries: dict[str, Any], arrays: dict[str, NDArray[Any]], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "c.npz"
    make().fit_examples(examples_of(3), checkpoint=path)
    with np.load(path) as file:
        found = dict(file)
    header = json.loads(found["header"].tobytes()) | entries
    np.savez(path, allow_pickle=False, **found | arrays | {"header": text_array(json.dumps(header))})
    with pytest.raises(UsageError, match=message):
        make().fit_examples(examples_of(3), checkpoint=path)


def test_a_checkpoint_goes_on_with_other_threads(tmp_path: Path) -> None:
    make().fit_examples(examples_of(3), checkpoint=tmp_path / "c.npz")
    make(num_threads=2).fit_examples(examples_of(3), checkpoint=tmp_path / "c.npz")


def test_each_epoch_is_told() -> None:
    epochs: list[Epoch] = []
    make().fit_examples(examples_of(12), on_epoch=epochs.append)
    assert [(epoch.number, epoch.num_epochs) for epoch in epochs] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert all(epoch.validation_loss is not None and epoch.programs_per_s > 0 for epoch in epochs)
    assert epochs[0].train_loss > epochs[-1].train_loss
    assert epochs[-1].time_left_s == 0


def test_training_stops_early_and_keeps_the_best_weights() -> None:
    """Labels of noise: what is learned of the one subjects makes the others worse."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 1, 12)).astype(np.float32)
    examples = Examples.build(list(values), (1 + rng.random(400)).tolist(), np.repeat(np.arange(20), 20).tolist())
    epochs: list[Epoch] = []
    model = make(width=64, epochs=60, patience=3, learning_rate=1e-2)
    model.fit_examples(examples, on_epoch=epochs.append)
    losses = [epoch.validation_loss for epoch in epochs]
    assert all(loss is not None for loss in losses)
    best = int(np.argmin(np.array(losses, np.float64)))
    assert len(epochs) == best + 1 + 3 < 60
    shorter = make(width=64, epochs=best + 1, patience=60, learning_rate=1e-2)
    shorter.fit_examples(examples)
    assert weights_of(model) == weights_of(shorter)


def test_held_out_are_whole_subjects() -> None:
    examples = examples_of(30)
    chosen = held_out(examples, 0.1, seed=0)
    assert chosen.sum() == 3 * 12
    assert len(set(examples.tasks[chosen].tolist()) & set(examples.tasks[~chosen].tolist())) == 0
    assert not np.array_equal(chosen, held_out(examples, 0.1, seed=1))


@pytest.mark.parametrize(("num_subjects", "share"), [(1, 0.9), (4, 0.1), (20, 0.0)])
def test_of_few_subjects_none_is_held_out(num_subjects: int, share: float) -> None:
    assert not held_out(examples_of(num_subjects), share, seed=0).any()


def test_of_subjects_that_tell_nothing_none_is_held_out() -> None:
    """Of one program, or of failures alone: whatever a network says, their loss is 0, and the first epoch the best."""
    many, few = examples_of(4), examples_of(30, num=1, seed=9)
    examples = Examples.build(
        [*(many.values[a:b] for a, b in pairwise(many.offsets)), *(few.values[a:b] for a, b in pairwise(few.offsets))],
        [*(1 / many.labels).tolist(), *(1 / few.labels).tolist()],
        [*many.tasks.tolist(), *(100 + few.tasks).tolist()],
    )
    for seed in range(8):
        chosen = held_out(examples, 0.1, seed)
        assert set(examples.tasks[chosen].tolist()) < {0, 1, 2, 3}
        assert chosen.sum() == 3 * 12
    assert not held_out(few, 0.5, seed=0).any()


def test_the_scale_of_columns_is_their_mean_and_deviation() -> None:
    values = np.random.default_rng(0).normal(3, 2, (1000, 4)).astype(np.float32)
    mean, deviation = column_scale(values)
    np.testing.assert_allclose(mean, values.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(deviation, values.std(axis=0), rtol=1e-5)


def test_training_leaves_torch_as_it_was() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3).tolist()
    torch.manual_seed(5)
    threads = torch.get_num_threads()
    make(num_threads=threads + 1).fit_examples(examples_of(2))
    assert torch.rand(3).tolist() == expected
    assert torch.get_num_threads() == threads


def test_a_checkpoint_may_be_larger_than_the_file_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the weights four times: those of large networks were written, and refused when training went on."""
    examples = examples_of(3)
    whole, torn = make(width=64), make(width=64)
    whole.fit_examples(examples)
    whole.save(tmp_path / "model.npz")
    monkeypatch.setattr("tilewright.cost_model.base.MAX_BYTES", (tmp_path / "model.npz").stat().st_size)
    with pytest.raises(InterruptError):
        torn.fit_examples(examples, checkpoint=tmp_path / "c.npz", on_epoch=interrupt_after(2))
    assert (tmp_path / "c.npz").stat().st_size > 2 * (tmp_path / "model.npz").stat().st_size
    torn.fit_examples(examples, checkpoint=tmp_path / "c.npz")
    assert weights_of(torn) == weights_of(whole)
