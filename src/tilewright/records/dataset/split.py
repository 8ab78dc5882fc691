"""`Split`: what of a corpus a model learns from, and what is kept from it.

Tasks are held out by their hashes: what networks have in common is in no training data, of no device.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tilewright.arguments import Range, several, whole_number
from tilewright.cost_model import Dataset, Group
from tilewright.errors import UsageError
from tilewright.records.dataset.corpus import EXACTLY, Corpus
from tilewright.records.dataset.networks import NetworkTasks

PROGRAMS, TASKS = "programs", "tasks"
LABELS_OF = (PROGRAMS, TASKS)
_SHARE = re.compile(r"([0-9]+(?:\.[0-9]*)?)%")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """What is held out, and how many labels of a device are learned from.

    `hold_out` has names of networks, which stand for all sizes of them, or titles, whose network is held out in all
    sizes, too; with a * for any letters, as in "resnet50*". A title after "=" is held out in that size alone, as in
    "=resnet50": its other sizes are learned from, but for tasks that they share. And it has shares of all tasks, such
    as "20%": which ones is a matter of their hashes alone.

    Of `device` only the share `labels` is learned from: of its programs, drawn with `seed` among those of all training
    tasks, as MTL-TLP's tables have it and as a budget of measurements on a new device is spent on what is already known
    elsewhere; or, if `labels_of` is "tasks", of its tasks with all their programs. A larger share has the programs of a
    smaller one. Of the devices in `others`, or of all but `device`, all is learned from. With `programs`, a task on a
    device has no more than so many to begin with, drawn with `seed`.
    """

    hold_out: tuple[str, ...] = ()
    device: str | None = None
    labels: float = 1.0
    labels_of: str = PROGRAMS
    others: tuple[str, ...] | None = None
    programs: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        several("hold_out", self.hold_out)
        several("others", self.others)
        whole_number("seed", self.seed, least=0)
        if self.labels not in Range(0, 1):
            raise UsageError(f"labels is {self.labels!r}; it must be a share of those of the device, from 0 to 1")
        if self.programs is not None:
            whole_number("programs", self.programs, least=1)
        if self.labels_of not in LABELS_OF:
            raise UsageError(f"labels_of is {self.labels_of!r}; it must be one of {', '.join(LABELS_OF)}")
        if self.device is None and (self.labels != 1 or self.others is not None):
            raise UsageError("a share of the labels, or some other devices, go with a device; name it")
        for text in self.hold_out:
            _share_of(text)

    @property
    def share(self) -> float:
        """Of all tasks, that is held out, beside those of networks."""
        return max(map(_share_of, self.hold_out), default=0.0)

    def networks(self, corpus: Corpus) -> list[NetworkTasks]:
        """The networks and variants that are held out by name."""
        names = [name for name in self.hold_out if not _share_of(name)]
        found = [network for name in names for network in corpus.named(name)]
        return [network for n, network in enumerate(found) if network not in found[:n]]

    def held_out(self, corpus: Corpus) -> frozenset[str]:
        """The hashes of the tasks that are not learned from."""
        found = self.networks(corpus)
        titles = {name.removeprefix(EXACTLY) for name in self.hold_out if name.startswith(EXACTLY)}
        names = {network.name for network in found if network.title not in titles}
        of_networks = {task for network in found for task in network.weights}
        of_networks |= {task for network in corpus.networks if network.name in names for task in network.weights}
        return frozenset(of_networks | {task for task in corpus.tasks if _place(task) < self.share})

    def training(self, corpus: Corpus) -> Dataset:
        """What a model learns from; UsageError where that is nothing, or nothing that can be ranked."""
        held_out = self.held_out(corpus)
        if self.device is None:
            dataset = self._thinned(corpus.dataset(lambda source: source.part.task not in held_out))
            _check_some(dataset, "of the datasets", held_out)
        else:
            dataset = self._with_few_labels(corpus, held_out)
        _check_ranks(dataset)
        return dataset

    def _with_few_labels(self, corpus: Corpus, held_out: frozenset[str]) -> Dataset:
        device, others = self.device, self.others
        assert device is not None
        corpus.check_devices([device, *(others or ())])
        own = self._thinned(
            corpus.dataset(lambda source: source.device.name == device and source.part.task not in held_out)
        )
        if self.labels:
            _check_some(own, f"of the device {device}", held_out)
        rest = corpus.dataset(
            lambda source: (
                source.part.task not in held_out
                and source.device.name != device
                and (others is None or source.device.name in others)
            )
        )
        few = Dataset(tuple(self._labelled(own.groups)))
        if self.labels and not few.num_valid:
            raise UsageError(
                f"{self.labels:.3g} of the labels of the device {device} are {len(few)} programs, of which none ran; "
                "take a larger share"
            )
        joined = Dataset((*few.groups, *self._thinned(rest).groups))
        _check_some(joined, "of the datasets", held_out)
        return joined

    def _thinned(self, dataset: Dataset) -> Dataset:
        """At most so many programs of each subject as there are to be, in the place of all."""
        if self.programs is None:
            return dataset
        by_subject: dict[object, list[Group]] = {}
        for group in dataset.groups:
            by_subject.setdefault(group.subject, []).append(group)
        rng = np.random.default_rng(self.seed)
        chosen = (_drawn(groups, self.programs, rng) for groups in by_subject.values())
        return Dataset(tuple(group for groups in chosen for group in groups))

    def _labelled(self, groups: Sequence[Group]) -> Iterable[Group]:
        """The share of the device's programs that is learned from."""
        if self.labels == 1:
            return groups
        rng = np.random.default_rng(self.seed)
        if self.labels_of == TASKS:
            tasks = sorted({group.task_hash for group in groups})
            chosen = {tasks[n] for n in rng.permutation(len(tasks))[: _count(self.labels, len(tasks))]}
            return [group for group in groups if group.task_hash in chosen]
        return _drawn(groups, _count(self.labels, sum(map(len, groups))), rng)


def _drawn(groups: Sequence[Group], num: int, rng: np.random.Generator) -> list[Group]:
    """So many of the programs of all groups; of more of them, a smaller number is a part."""
    ends = np.cumsum([0, *map(len, groups)])
    if num >= ends[-1]:
        return list(groups)
    drawn = np.sort(rng.permutation(ends[-1])[:num])
    mine = [drawn[(drawn >= begin) & (drawn < end)] - begin for begin, end in pairwise(ends)]
    return [group.select(numbers) for group, numbers in zip(groups, mine, strict=True) if len(numbers)]


def _share_of(text: str) -> float:
    """The share that a text names; 0 for the name of a network.

    >>> _share_of("20%"), _share_of("resnet50")
    (0.2, 0.0)
    """
    found = _SHARE.fullmatch(text)
    if found is None:
        return 0.0
    share = float(found[1]) / 100
    if not 0 < share < 1:
        raise UsageError(f"the share of tasks to hold out is {text}; it must be above 0% and below 100%")
    return share


def _place(task: str) -> float:
    """Where a task stands between 0 and 1; the same in every corpus."""
    return int.from_bytes(hashlib.sha256(f"hold out {task}".encode()).digest()[:7], "big") / 2**56


def _count(share: float, num: int) -> int:
    """As many as the share says, rounded, and one at least of a share that is not 0."""
    return max(round(share * num), 1) if share else 0


def _check_some(dataset: Dataset, what: str, held_out: frozenset[str]) -> None:
    if len(dataset) == 0:
        raise UsageError(
            f"nothing {what} is left to learn from, with {len(held_out)} tasks held out; hold out less, or give more "
            "data"
        )
    if dataset.num_valid == 0:
        raise UsageError(
            f"no program {what} has a label, since all {len(dataset)} failed; give data of programs that ran"
        )


def _check_ranks(dataset: Dataset) -> None:
    """That there are two programs of one task of which one is faster."""
    seen: dict[object, tuple[float, float]] = {}
    for group in dataset.groups:
        low, high = seen.get(group.subject, (np.inf, 0.0))
        low, high = min(low, float(group.latencies_s.min())), max(high, float(group.latencies_s.max()))
        if low < high:
            return
        seen[group.subject] = low, high
    raise UsageError(
        f"a model learns which programs of a task are faster, and in none of {len(seen)} tasks do two of the "
        f"{len(dataset)} programs differ; give more programs of each task"
    )
