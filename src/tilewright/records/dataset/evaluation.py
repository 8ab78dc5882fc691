"""How well a model picks the fast programs of networks that were measured: TLP's top-k scores, and pairwise accuracy.

The top-k score of a network is the time that it takes with the best measured program of each task, over the time that
it takes with the best of the k that the model likes most. Over several networks, both times are summed first. Slow
tasks weigh most in it, and slow programs among the k may weigh more than all else; the mean over tasks of each task's
own score (`peak_1`, `peak_5`) tells how it is for most.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.arguments import several
from tilewright.cost_model import CostModel, Group, RandomModel, pairwise_accuracy, peak_score, top_k_latency_s
from tilewright.errors import UsageError
from tilewright.records.dataset.corpus import Corpus
from tilewright.records.dataset.device import Device
from tilewright.records.dataset.networks import NetworkTasks
from tilewright.records.dataset.split import Split

Floats = NDArray[np.float64]

_KS = (1, 5)


@dataclass(frozen=True, slots=True, eq=False)
class RankingList:
    """All measured programs of a task on a device in a context, of which a model is to find the fast ones."""

    task: str
    device: str
    context: str
    groups: tuple[Group, ...]

    @property
    def latencies_s(self) -> Floats:
        """Of all programs; infinite for failures."""
        return np.concatenate([group.latencies_s for group in self.groups])

    def scores(self, model: CostModel) -> Floats:
        """What the model says of the programs. To a random one all are alike, which gives what it finds on average."""
        if isinstance(model, RandomModel):
            return np.zeros(sum(map(len, self.groups)))
        own = model.on_device(self.device)
        return np.concatenate([own.score(group.encoded(own.encoder)) for group in self.groups])


@dataclass(frozen=True, slots=True)
class NetworkLists:
    """A network on a device: the lists of its tasks, and how many kernels each stands for."""

    title: str
    device: str
    weights: Mapping[RankingList, int]
    num_missing: int
    """Tasks of which no program ran on the device, or none was measured."""


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationData:
    """What models are compared on. Lists keep what encoders give, so that the next model is quicker."""

    networks: tuple[NetworkLists, ...]

    @classmethod
    def of(
        cls, corpus: Corpus, split: Split, devices: Collection[str] | None = None, workloads: bool = False
    ) -> EvaluationData:
        """The held-out networks on some devices, or on all; of a split that holds out nothing, all networks.

        Of a split that holds out a share of the tasks, all networks with such tasks, and those of them alone. Workloads
        count where they are held out by name, if `workloads` says so, or if there are no networks. The tasks of a log
        of another tool, each as one kernel, are a network that is called after the device.
        """
        several("devices", devices)
        corpus.check_devices(devices or ())
        is_named_alone = bool(split.hold_out) and not split.share
        kept = split.held_out(corpus) if split.hold_out else corpus.tasks
        chosen = split.networks(corpus)
        if corpus.tasks and not kept:
            raise UsageError(
                f"{', '.join(split.hold_out)} holds out none of {len(corpus.tasks)} tasks, and models are rated on "
                "those; hold out more"
            )
        if not is_named_alone:
            chosen += [network for network in _counting(corpus, workloads) if network not in chosen]
        networks: list[NetworkLists] = []
        for device in corpus.devices:
            if devices is not None and device.name not in devices:
                continue
            if device.tool:
                networks += [] if is_named_alone else _of_log(corpus, device, kept)
            else:
                networks += _of_networks(corpus, device, corpus.as_cut_for(device.name, chosen), kept)
        if not chosen and not networks and any(not source.device.tool for source in corpus.sources):
            raise UsageError(
                "models are rated on networks, and the datasets name none; restore the folder networks of the dataset, "
                "or collect again, which measures nothing that is there"
            )
        if not networks:
            where = "any device" if devices is None else " or ".join(devices)
            what = ", ".join(network.title for network in chosen) or "the datasets"
            raise UsageError(f"no task of {what} has programs that ran on {where}; evaluate on other data")
        return cls(tuple(networks))

    @property
    def lists(self) -> tuple[RankingList, ...]:
        """Those of all networks, each once."""
        return tuple(dict.fromkeys(each for network in self.networks for each in network.weights))

    @property
    def num_programs(self) -> int:
        return sum(len(group) for each in self.lists for group in each.groups)


@dataclass(frozen=True, slots=True)
class Rating:
    """How well a model ranks: top-k scores of networks; the share of pairs in the right order, and top-k scores of
    single tasks, as means over tasks."""

    top_1: float
    top_5: float
    pairwise: float
    peak_1: float
    peak_5: float
    num_tasks: int
    num_missing_tasks: int
    """Of the networks, on each device: those of which no program ran there, or none was measured."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well a model ranks, over all networks and devices, for each network, and for each device."""

    model: str
    overall: Rating
    networks: Mapping[str, Rating]
    devices: Mapping[str, Rating]

    def to_json(self) -> dict[str, Any]:
        """The same as JSON: the overall numbers beside the model's name."""
        return {
            "model": self.model,
            **asdict(self.overall),
            "networks": {title: asdict(rating) for title, rating in self.networks.items()},
            "devices": {name: asdict(rating) for name, rating in self.devices.items()},
        }


def evaluate(model: CostModel, data: EvaluationData, name: str | None = None) -> Evaluation:
    """Rate a model, under its own name or another."""
    return rate(name or model.name, data, [each.scores(model) for each in data.lists])


def rate(name: str, data: EvaluationData, scores: Sequence[Floats]) -> Evaluation:
    """Rate the scores of the programs of each list."""
    found = {each: _Found.of(each, mine) for each, mine in zip(data.lists, scores, strict=True)}
    titles = dict.fromkeys(network.title for network in data.networks)
    devices = dict.fromkeys(network.device for network in data.networks)
    return Evaluation(
        name,
        _rating(data.networks, found),
        {title: _rating([n for n in data.networks if n.title == title], found) for title in titles},
        {device: _rating([n for n in data.networks if n.device == device], found) for device in devices},
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What a model finds in a list."""

    best_s: float
    top_s: tuple[float, ...]
    peaks: tuple[float, ...]
    pairwise: float | None
    """None where no two programs differ."""

    @classmethod
    def of(cls, programs: RankingList, scores: Floats) -> _Found:
        latencies_s = programs.latencies_s
        differ = latencies_s.min() < latencies_s.max()
        return cls(
            float(latencies_s.min()),
            tuple(top_k_latency_s(scores, latencies_s, k) for k in _KS),
            tuple(peak_score(scores, 1 / latencies_s, k) for k in _KS),
            pairwise_accuracy(scores, 1 / latencies_s) if differ else None,
        )


def _rating(networks: Sequence[NetworkLists], found: Mapping[RankingList, _Found]) -> Rating:
    kernels = [(found[each], weight) for network in networks for each, weight in network.weights.items()]
    best_s = sum(weight * what.best_s for what, weight in kernels)
    top_1, top_5 = (best_s / sum(weight * what.top_s[k] for what, weight in kernels) for k in range(len(_KS)))
    lists = dict.fromkeys(each for network in networks for each in network.weights)
    pairs = [share for each in lists if (share := found[each].pairwise) is not None]
    pairwise = float(np.mean(pairs)) if pairs else 1.0
    peak_1, peak_5 = np.mean([found[each].peaks for each in lists], axis=0).tolist()
    num_missing = sum(network.num_missing for network in networks)
    return Rating(top_1, top_5, pairwise, peak_1, peak_5, len(lists), num_missing)


def _counting(corpus: Corpus, workloads: bool) -> list[NetworkTasks]:
    """The networks that count where none are named."""
    with_workloads = workloads or all(network.is_workload for network in corpus.networks)
    return [network for network in corpus.networks if with_workloads or not network.is_workload]


def _of_log(corpus: Corpus, device: Device, kept: Collection[str]) -> list[NetworkLists]:
    lists = [each for found in _lists(corpus, device, kept).values() for each in found]
    return [NetworkLists(device.name, device.name, dict.fromkeys(lists, 1), 0)] if lists else []


def _of_networks(
    corpus: Corpus, device: Device, networks: Iterable[NetworkTasks], kept: Collection[str]
) -> Iterator[NetworkLists]:
    """The networks as far as the device has programs of their tasks."""
    lists = _lists(corpus, device, {task for network in networks for task in network.weights if task in kept})
    for network in networks:
        tasks = [task for task in network.weights if task in kept]
        weights = {_of_context(lists[task], network.context): network.weights[task] for task in tasks if task in lists}
        if weights:
            yield NetworkLists(network.title, device.name, weights, len(tasks) - len(weights))


def _lists(corpus: Corpus, device: Device, tasks: Collection[str]) -> dict[str, list[RankingList]]:
    """For each task with programs that ran on the device, those of each context."""
    by_subject: dict[object, list[Group]] = {}
    for source in corpus.sources:
        if source.device.name == device.name and source.part.task in tasks:
            for group in corpus.groups(source):
                by_subject.setdefault(group.subject, []).append(group)
    found: dict[str, list[RankingList]] = {}
    for groups in by_subject.values():
        if any(np.isfinite(group.latencies_s).any() for group in groups):
            task = groups[0].task_hash
            found.setdefault(task, []).append(RankingList(task, device.name, groups[0].context, tuple(groups)))
    return found


def _of_context(lists: Sequence[RankingList], context: str) -> RankingList:
    """A task may have been measured in several contexts: that of the network, or else the one with most programs."""
    return max(lists, key=lambda each: (each.context == context, len(each.latencies_s)))
