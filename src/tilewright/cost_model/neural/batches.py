"""Programs in batches, as training goes through them: whole lists of one subject, or all shuffled.

A batch is kept as numbers of programs. Its arrays are made when it is its turn, one for each bucket of rows, so that a
program of few rows is not filled up to the longest of the batch, and the data is not held twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.examples import Examples
from tilewright.cost_model.neural.losses import RANK, RankedLists

_SMALL_BUCKETS = (2, 4, 8)


def row_bucket(num_rows: int) -> int:
    """The rows to which a program of so many is filled up: so few sizes that a network is compiled for each.

    >>> [row_bucket(num_rows) for num_rows in (1, 3, 8, 9, 60, 65)]
    [2, 4, 8, 16, 64, 96]
    """
    for bucket in _SMALL_BUCKETS:
        if num_rows <= bucket:
            return bucket
    step = 8 if num_rows <= 64 else 32
    return -(-num_rows // step) * step


@dataclass(frozen=True, eq=False)
class Batch:
    """Programs of one step of training, those of a list beside each other."""

    examples: Examples
    programs: NDArray[np.int64]
    sizes: NDArray[np.int64]
    """Of the lists."""

    def __len__(self) -> int:
        return len(self.programs)

    @cached_property
    def labels(self) -> NDArray[np.float64]:
        return self.examples.labels[self.programs]

    @cached_property
    def lists(self) -> RankedLists:
        return RankedLists.of(self.labels, self.sizes)

    def parts(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]:
        """For each bucket of rows the places of its programs in the batch, their values and their mask."""
        counts = self.examples.num_statements[self.programs]
        buckets = np.array([row_bucket(count) for count in counts])
        for bucket in np.unique(buckets):
            places = np.flatnonzero(buckets == bucket)
            yield places, *filled_up(*self.examples.padded(self.programs[places]), bucket)


def filled_up(
    values: NDArray[np.float32], mask: NDArray[np.bool_], num_rows: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Values and mask with rows of zeros up to `num_rows`, as networks take them."""
    missing = num_rows - values.shape[1]
    if missing == 0:
        return values, mask.astype(np.float32)
    return np.pad(values, ((0, 0), (0, missing), (0, 0))), np.pad(mask, ((0, 0), (0, missing))).astype(np.float32)


def make_batches(
    examples: Examples, programs: NDArray[np.int64], loss: str, batch_size: int, rng: np.random.Generator
) -> list[Batch]:
    """The given programs in random batches: for "rank" whole lists together, at least `batch_size` programs a batch.

    A list of more programs than that is cut at random. For the other losses a batch is `batch_size` programs of any
    subject, as one list.
    """
    if loss != RANK:
        shuffled = rng.permutation(programs)
        cuts = np.split(shuffled, range(batch_size, len(shuffled), batch_size))
        return [Batch(examples, cut, np.array([len(cut)])) for cut in cuts]
    lists = _lists(examples, rng.permutation(programs), batch_size)
    return [
        Batch(examples, np.concatenate(group), np.array([len(one) for one in group]))
        for group in _packed([lists[n] for n in rng.permutation(len(lists))], batch_size)
    ]


def _lists(examples: Examples, programs: NDArray[np.int64], longest: int) -> list[NDArray[np.int64]]:
    """The programs of each subject, none longer than `longest`, in about equal parts where they must be cut."""
    by_subject = programs[np.argsort(examples.tasks[programs], kind="stable")]
    subjects = np.split(by_subject, np.flatnonzero(np.diff(examples.tasks[by_subject])) + 1)
    return [part for own in subjects for part in np.array_split(own, -(-len(own) // longest))]


def _packed(lists: list[NDArray[np.int64]], batch_size: int) -> Iterator[list[NDArray[np.int64]]]:
    group: list[NDArray[np.int64]] = []
    for one in lists:
        group.append(one)
        if sum(map(len, group)) >= batch_size:
            yield group
            group = []
    if group:
        yield group
