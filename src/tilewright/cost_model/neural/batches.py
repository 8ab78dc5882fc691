"""Programs in batches, as training goes through them: whole lists of one subject, or all shuffled.

A batch is kept as numbers of programs. Its arrays are made when it is its turn, one for each bucket of rows, so that a
program of few rows is not filled up to the longest of the batch, and the data is not held twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
class BatchMaker:
    """Makes batches of programs for one loss. Programs of `num_rows` rows are filled up to `padded_rows(num_rows)`."""

    examples: Examples
    loss: str
    batch_size: int
    padded_rows: Callable[[int], int] = row_bucket

    def batches(self, programs: NDArray[np.int64], rng: np.random.Generator) -> list[Batch]:
        """The given programs in random batches.

        For "rank" whole lists are together, at least `batch_size` programs a batch; a list of more programs is cut at
        random. For the other losses a batch is `batch_size` programs of any subject, as one list.
        """
        shuffled = rng.permutation(programs)
        if self.loss != RANK:
            cuts = np.split(shuffled, range(self.batch_size, len(shuffled), self.batch_size))
            return [self._batch([cut]) for cut in cuts]
        lists = self._lists(shuffled)
        order = rng.permutation(len(lists))
        return [self._batch(group) for group in _packed([lists[n] for n in order], self.batch_size)]

    def _batch(self, lists: list[NDArray[np.int64]]) -> Batch:
        return Batch(self, np.concatenate(lists), np.array([len(one) for one in lists]))

    def _lists(self, programs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The programs of each subject, in about equal parts where they are too many."""
        tasks = self.examples.tasks
        by_subject = programs[np.argsort(tasks[programs], kind="stable")]
        subjects = np.split(by_subject, np.flatnonzero(np.diff(tasks[by_subject])) + 1)
        return [part for own in subjects for part in np.array_split(own, -(-len(own) // self.batch_size))]


def _packed(lists: list[NDArray[np.int64]], batch_size: int) -> Iterator[list[NDArray[np.int64]]]:
    group: list[NDArray[np.int64]] = []
    for one in lists:
        group.append(one)
        if sum(map(len, group)) >= batch_size:
            yield group
            group = []
    if group:
        yield group


@dataclass(frozen=True, eq=False)
class Batch:
    """Programs of one step of training, those of a list beside each other."""

    maker: BatchMaker
    programs: NDArray[np.int64]
    """Their numbers in the examples."""
    sizes: NDArray[np.int64]
    """Of the lists."""

    def __len__(self) -> int:
        return len(self.programs)

    @property
    def examples(self) -> Examples:
        return self.maker.examples

    @cached_property
    def labels(self) -> NDArray[np.float64]:
        return self.examples.labels[self.programs]

    @cached_property
    def lists(self) -> RankedLists:
        return RankedLists.of(self.labels, self.sizes)

    def chosen(self, is_chosen: NDArray[np.bool_]) -> Batch:
        """Some of the programs alone, in the lists that they are in."""
        number = np.repeat(np.arange(len(self.sizes)), self.sizes)
        sizes = np.bincount(number[is_chosen], minlength=len(self.sizes))
        return Batch(self.maker, self.programs[is_chosen], sizes[sizes > 0])

    def parts(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]:
        """For each number of rows the places of its programs in the batch, their values and their mask."""
        counts, number = np.unique(self.examples.num_statements[self.programs], return_inverse=True)
        num_rows = np.array([self.maker.padded_rows(int(count)) for count in counts])[number]
        for rows in np.unique(num_rows):
            places = np.flatnonzero(num_rows == rows)
            yield places, *filled_up(*self.examples.padded(self.programs[places]), int(rows))


def filled_up(
    values: NDArray[np.float32], mask: NDArray[np.bool_], num_rows: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Values and mask with rows of zeros up to `num_rows`, as networks take them."""
    missing = num_rows - values.shape[1]
    if missing == 0:
        return values, mask.astype(np.float32)
    return np.pad(values, ((0, 0), (0, missing), (0, 0))), np.pad(mask, ((0, 0), (0, missing))).astype(np.float32)
