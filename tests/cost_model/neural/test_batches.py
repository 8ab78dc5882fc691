"""Batches have every program once; those of "rank" have whole lists of one subject."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.cost_model import Examples
from tilewright.cost_model.neural.batches import Batch, BatchMaker, filled_up, row_bucket


def examples_of(*counts: int, num_rows: int | None = None) -> Examples:
    """As many programs of each subject, of one to five rows; a program's values are its number."""
    num = sum(counts)
    rows = [1 + n % 5 if num_rows is None else num_rows for n in range(num)]
    features = [np.full((rows[n], 2), n, np.float32) for n in range(num)]
    subjects = np.repeat(np.arange(len(counts)), counts)
    order = np.random.default_rng(0).permutation(num)
    return Examples.build([features[n] for n in order], np.linspace(1, 2, num).tolist(), subjects[order].tolist())


def batches_of(examples: Examples, loss: str, batch_size: int, seed: int = 0) -> list[Batch]:
    maker = BatchMaker(examples, loss, batch_size)
    return maker.batches(np.arange(len(examples)), np.random.default_rng(seed))


@pytest.mark.parametrize("loss", ["rank", "rank-mixed", "mse"])
@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
def test_every_program_is_in_one_batch(loss: str, batch_size: int) -> None:
    examples = examples_of(30, 1, 20, 5)
    found = np.concatenate([batch.programs for batch in batches_of(examples, loss, batch_size)])
    assert sorted(found.tolist()) == list(range(len(examples)))


def test_a_list_has_all_programs_of_a_subject() -> None:
    examples = examples_of(30, 1, 20, 5)
    for batch in batches_of(examples, "rank", 24):
        for own in np.split(batch.programs, np.cumsum(batch.sizes)[:-1]):
            (subject,) = set(examples.tasks[own].tolist())
            assert len(own) == (examples.tasks == subject).sum() or len(own) >= 12  # 30 is cut into halves


def test_batches_of_lists_reach_the_size_and_the_last_has_the_rest() -> None:
    sizes = [len(batch) for batch in batches_of(examples_of(*[10] * 10), "rank", 25)]
    assert sizes == [30, 30, 30, 10]


def test_other_losses_have_one_list_of_mixed_programs() -> None:
    examples = examples_of(50, 50)
    for batch in batches_of(examples, "rank-mixed", 32)[:-1]:
        assert batch.sizes.tolist() == [32]
        assert len(set(examples.tasks[batch.programs].tolist())) == 2


def test_the_order_follows_from_the_seed() -> None:
    examples = examples_of(30, 20)
    first, same, other = (batches_of(examples, "rank", 16, seed)[0].programs.tolist() for seed in (1, 1, 2))
    assert first == same != other


def test_a_part_has_programs_of_one_bucket_filled_up_with_zeros() -> None:
    examples = examples_of(12)
    (batch,) = batches_of(examples, "rank", 64)
    seen = []
    for places, values, mask in batch.parts():
        assert values.shape[:2] == mask.shape
        assert values.shape[1] in (2, 4, 8)
        for place, rows, own in zip(places, values, mask, strict=True):
            program = batch.programs[place]
            start, end = examples.offsets[program : program + 2]
            np.testing.assert_array_equal(rows[own == 1], examples.values[start:end])
            assert row_bucket(end - start) == len(rows)
            assert not rows[own == 0].any()
        seen += places.tolist()
    assert sorted(seen) == list(range(12))


def test_a_model_may_fill_up_in_its_own_way() -> None:
    maker = BatchMaker(examples_of(4, num_rows=25), "mse", 8, padded_rows=lambda num_rows: num_rows)
    (batch,) = maker.batches(np.arange(4), np.random.default_rng(0))
    ((_, values, mask),) = batch.parts()
    assert values.shape == (4, 25, 2)
    assert mask.all()


def test_buckets_are_few_and_never_too_small() -> None:
    buckets = [row_bucket(num_rows) for num_rows in range(1, 300)]
    assert all(bucket >= num_rows for num_rows, bucket in enumerate(buckets, 1))
    assert buckets == sorted(buckets)
    assert len(set(buckets)) < 20


def test_full_programs_are_left_as_they_are() -> None:
    values = np.ones((2, 8, 3), np.float32)
    assert filled_up(values, np.ones((2, 8), np.bool_), 8)[0] is values
