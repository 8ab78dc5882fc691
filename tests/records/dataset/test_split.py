"""Splits: what is held out is learned from nowhere, shares of labels are drawn, and what leaves nothing is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.records.dataset.samples import ARM, GEMM, HASWELL, SMALL, some_programs, write_sample
from tests.records.dataset.test_importing import ansor_line, imported
from tilewright.cost_model import Dataset
from tilewright.errors import UsageError
from tilewright.features import ChoicesEncoder
from tilewright.measure import OK, RUN_ERROR, Measurement
from tilewright.records.dataset import Corpus, DatasetFolder, Device, NetworkTasks, Split, TaskPrograms
from tilewright.target import Target


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    write_sample(tmp_path / "data")
    return Corpus.open([tmp_path / "data"])


def tasks_by_device(dataset: Dataset) -> set[tuple[str, str]]:
    return {(group.device, group.task_hash) for group in dataset.groups}


def programs_by_device(dataset: Dataset) -> Counter[str]:
    counts: Counter[str] = Counter()
    for group in dataset.groups:
        counts[group.device] += len(group)
    return counts


def test_without_anything_held_out_all_is_learned_from(corpus: Corpus) -> None:
    dataset = Split().training(corpus)
    assert programs_by_device(dataset) == {"haswell-2t": 24, "a72": 24}


@pytest.mark.parametrize("name", ["one", "one[batch=4]"])
def test_a_networks_tasks_are_held_out_on_every_device(corpus: Corpus, name: str) -> None:
    split = Split(hold_out=(name,))
    assert split.held_out(corpus) == {GEMM.hash}
    assert tasks_by_device(split.training(corpus)) == {("haswell-2t", SMALL.hash), ("a72", SMALL.hash)}


def test_a_variant_takes_the_tasks_of_all_variants_with_it(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "data")
    folder.add_network(NetworkTasks("one", {SMALL.hash: 1}, "warm", "batch=1"))
    split = Split(hold_out=("one[batch=4]",))
    corpus = Corpus.open([folder.path])
    assert [network.title for network in split.networks(corpus)] == ["one[batch=4]"]
    assert split.held_out(corpus) == {GEMM.hash, SMALL.hash}


def test_one_size_alone_leaves_the_tasks_of_others(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "data")
    folder.add_network(NetworkTasks("one", {SMALL.hash: 1}, "warm", "batch=1"))
    split = Split(hold_out=("=one[batch=4]",))
    corpus = Corpus.open([folder.path])
    assert [network.title for network in split.networks(corpus)] == ["one[batch=4]"]
    assert split.held_out(corpus) == {GEMM.hash}
    with pytest.raises(UsageError, match="the network '=one' is in none of the datasets"):
        Split(hold_out=("=one",)).networks(corpus)


@pytest.mark.parametrize(
    ("name", "titles"), [("o*", ["one[batch=4]"]), ("*", ["both", "one[batch=4]"]), ("*]", ["one[batch=4]"])]
)
def test_a_star_stands_for_any_letters(corpus: Corpus, name: str, titles: list[str]) -> None:
    assert [network.title for network in Split(hold_out=(name,)).networks(corpus)] == titles


def test_a_share_of_the_tasks_is_held_out_by_their_hashes_alone(corpus: Corpus, tmp_path: Path) -> None:
    held_out = [Split(hold_out=(f"{share}%",)).held_out(corpus) for share in (0.001, 99.999)]
    assert held_out == [frozenset(), {GEMM.hash, SMALL.hash}]
    other = DatasetFolder.create(tmp_path / "other")
    some_programs(other.add_task(SMALL)).write(other.part(other.add_device(HASWELL), SMALL, "warm").path, SMALL, "warm")
    for share in ("30%", "60%", "90%"):
        split = Split(hold_out=(share,))
        assert split.held_out(Corpus.open([other.path])) == split.held_out(corpus) & {SMALL.hash}


def test_few_programs_of_a_device_and_all_of_the_others(corpus: Corpus) -> None:
    dataset = Split(device="a72", labels=0.25).training(corpus)
    assert programs_by_device(dataset) == {"haswell-2t": 24, "a72": 6}


@pytest.mark.parametrize("others", [(), ("haswell-2t",)])
def test_only_the_chosen_devices_are_learned_from_beside_the_one(corpus: Corpus, others: tuple[str, ...]) -> None:
    dataset = Split(device="a72", labels=0.5, others=others).training(corpus)
    assert programs_by_device(dataset) == {"a72": 12, **dict.fromkeys(others, 24)}


def test_no_labels_of_a_device_leave_it_out(corpus: Corpus) -> None:
    assert programs_by_device(Split(device="a72", labels=0).training(corpus)) == {"haswell-2t": 24}


def test_few_tasks_of_a_device_with_all_their_programs(corpus: Corpus) -> None:
    dataset = Split(device="a72", labels=0.5, labels_of="tasks", others=()).training(corpus)
    assert programs_by_device(dataset) == {"a72": 12}
    assert len(tasks_by_device(dataset)) == 1


def rows_of(corpus: Corpus, labels: float, seed: int) -> set[tuple[object, ...]]:
    dataset = Split(device="a72", labels=labels, others=(), seed=seed).training(corpus)
    return {
        (g.task_hash, str(g.population.sketch), *row) for g in dataset.measured for row in g.population.rows.tolist()
    }


def test_a_seed_draws_the_same_programs_and_a_larger_share_has_those_of_a_smaller(corpus: Corpus) -> None:
    assert rows_of(corpus, 0.4, seed=1) == rows_of(corpus, 0.4, seed=1)
    assert rows_of(corpus, 0.4, seed=1) != rows_of(corpus, 0.4, seed=2)
    assert rows_of(corpus, 0.4, seed=1) < rows_of(corpus, 0.7, seed=1)


def test_no_more_than_some_programs_of_each_task_on_a_device(corpus: Corpus) -> None:
    dataset = Split(programs=5).training(corpus)
    counts = Counter((group.device, group.task_hash) for group in dataset.groups for _ in range(len(group)))
    assert set(counts.values()) == {5}
    assert len(counts) == 4
    few = Split(programs=5, device="a72", labels=0.5).training(corpus)
    assert programs_by_device(few) == {"haswell-2t": 10, "a72": 5}
    assert len(Split(programs=500).training(corpus)) == 48


def test_a_share_of_a_log_is_drawn_too(tmp_path: Path) -> None:
    lines = [ansor_line([n + 1], (n + 1) * 1e-3) for n in range(20)]
    imported(tmp_path / "data", "v100", *lines)
    imported(tmp_path / "data", "k80", *lines)
    dataset = Split(device="k80", labels=0.2).training(Corpus.open([tmp_path / "data"]))
    assert programs_by_device(dataset) == {"v100": 20, "k80": 4}


def test_several_datasets_are_one_corpus(corpus: Corpus, tmp_path: Path) -> None:
    imported(tmp_path / "logs", "v100", ansor_line([4]), ansor_line([8], 2e-3))
    both = Corpus.open([tmp_path / "data", tmp_path / "logs", tmp_path / "data"])
    assert [device.name for device in both.devices] == ["a72", "haswell-2t", "v100"]
    assert both.networks == corpus.networks
    assert len(both.tasks) == 3
    assert len(both.dataset(lambda _: True)) == 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": 1.5, "device": "a72"}, "labels is 1.5; it must be a share of those of the device, from 0 to 1"),
        ({"labels": "0.5", "device": "a72"}, "labels is '0.5'; it must be a share of those of the device, from 0 to 1"),
        ({"labels": float("nan"), "device": "a72"}, "labels is nan"),
        ({"labels": 0.5}, "go with a device; name it"),
        ({"others": ("a72",)}, "go with a device; name it"),
        ({"programs": 0}, "programs is 0; it must be at least 1"),
        ({"labels_of": "kernels"}, "labels_of is 'kernels'; it must be one of programs, tasks"),
        ({"hold_out": ("100%",)}, "to hold out is 100%; it must be above 0% and below 100%"),
        ({"hold_out": ("resnet50",)}, "the network 'resnet50' is in none of the datasets; they have both, one"),
        ({"hold_out": "both"}, r"hold_out is 'both'; it must be a list, such as \['both'\]"),
        ({"device": "a72", "others": "a72"}, r"others is 'a72'; it must be a list, such as \['a72'\]"),
        ({"device": "a72", "labels": 0.5, "seed": -1}, "seed is -1; it must be at least 0"),
        ({"hold_out": ("on.",)}, "the network 'on.' is in none"),
        ({"hold_out": ("both",)}, "nothing of the datasets is left to learn from, with 2 tasks held out"),
        ({"device": "m1"}, "the device 'm1' is in none of the datasets; they have a72, haswell-2t"),
        ({"device": "a72", "others": ("m1",)}, "the device 'm1' is in none"),
        ({"device": "a72", "hold_out": ("both",)}, "nothing of the device a72 is left to learn from"),
        ({"device": "a72", "labels": 0, "others": ()}, "nothing of the datasets is left to learn from"),
        ({"device": "a72", "labels": 0.001, "others": ()}, "in none of 1 tasks do two of the 1 programs differ"),
    ],
)
def test_what_cannot_be_is_refused(corpus: Corpus, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Split(**options).training(corpus)  # type: ignore[arg-type]


def outcomes(measurements: list[Measurement]) -> TaskPrograms:
    candidates = some_programs(GEMM, len(measurements)).candidates()
    return TaskPrograms().with_measured(candidates, ["random"] * len(candidates), measurements)


@pytest.mark.parametrize(
    ("measurements", "message"),
    [
        ([Measurement(RUN_ERROR, error="it died")] * 4, "no program of the datasets has a label, since all 4 failed"),
        ([Measurement(OK, 1e-3, (1e-3,))] * 4, "in none of 1 tasks do two of the 4 programs differ"),
        ([Measurement(OK, 1e-3, (1e-3,))], "in none of 1 tasks do two of the 1 programs differ"),
    ],
)
def test_labels_of_one_class_are_refused(tmp_path: Path, measurements: list[Measurement], message: str) -> None:
    folder = DatasetFolder.create(tmp_path / "data")
    device = folder.add_device(HASWELL)
    outcomes(measurements).write(folder.part(device, folder.add_task(GEMM), "warm").path, GEMM, "warm")
    with pytest.raises(UsageError, match=message):
        Split().training(Corpus.open([folder.path]))


def test_a_device_without_labels_is_refused(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "data")
    failures = outcomes([Measurement(RUN_ERROR, error="it died")] * 12)
    for task in (GEMM, SMALL):
        folder.part(ARM, task, "warm").path.unlink()
    failures.write(folder.part(ARM, GEMM, "warm").path, GEMM, "warm")
    with pytest.raises(UsageError, match="no program of the device a72 has a label, since all 12 failed"):
        Split(device="a72", labels=0.5).training(Corpus.open([folder.path]))


def test_zero_and_nan_as_latencies_cost_their_part_alone(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "data")
    for latency_s, task in ((0.0, GEMM), (np.nan, SMALL)):
        wrong = [Measurement(OK, latency_s, (latency_s,))] * 3
        outcomes(wrong).write(folder.part(HASWELL, task, "warm").path, task, "warm")
    with pytest.warns(UserWarning, match="left out: .*the latency of a program that ran is from 1e-12"):
        dataset = Split().training(Corpus.open([folder.path]))
    assert programs_by_device(dataset) == {"a72": 24}


def test_a_broken_dataset_is_refused_and_a_broken_part_left_out(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "data")
    folder.part(HASWELL, GEMM, "warm").path.write_bytes(b"what")
    (folder.path / "tasks" / f"{SMALL.hash}.json").unlink()
    with pytest.warns(UserWarning, match="a part of the dataset is left out"):
        dataset = Split().training(Corpus.open([folder.path]))
    assert tasks_by_device(dataset) == {("a72", GEMM.hash)}
    (folder.path / "dataset.json").write_text("what")
    with pytest.raises(UsageError, match="it is not JSON"):
        Corpus.open([folder.path])
    for path in (folder.path, str(folder.path)):
        with pytest.raises(UsageError, match="it must be a list"):
            Corpus.open(path)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the path of a dataset is empty; name a folder"):
        Corpus.open([""])
    with pytest.raises(UsageError, match="at least one dataset"):
        Corpus.open([])


def test_different_devices_of_one_name_are_refused(tmp_path: Path) -> None:
    write_sample(tmp_path / "data")
    other = DatasetFolder.create(tmp_path / "other")
    other.add_device(Device("a72", str(Target.parse("llvm -mcpu=haswell")), 1, "Not that one"))
    with pytest.raises(UsageError, match="two datasets call different devices 'a72'"):
        Corpus.open([tmp_path / "data", tmp_path / "other"])


def test_logs_of_one_device_in_two_datasets_may_have_two_targets(tmp_path: Path) -> None:
    imported(tmp_path / "data", "v100", ansor_line([1]), ansor_line([2], 2e-3))
    imported(tmp_path / "other", "v100", ansor_line([4], 3e-3).replace('"cuda"', '"cuda -arch=sm_75"'))
    corpus = Corpus.open([tmp_path / "data", tmp_path / "other"])
    assert [device.name for device in corpus.devices] == ["v100"]
    assert programs_by_device(Split().training(corpus)) == {"v100": 3}


def test_what_one_corpus_reads_is_read_once(corpus: Corpus) -> None:
    first, second = (Split(device="a72").training(corpus) for _ in range(2))
    assert all(a is b for a, b in zip(first.groups, second.groups, strict=True))
    encoder = ChoicesEncoder()
    before = first.groups[0].encoded(encoder)
    assert second.groups[0].encoded(encoder) is before
    corpus.forget()
    assert first.groups[0].encoded(encoder) is not before
