"""Evaluations: sums over the tasks of networks, counted by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.records.dataset.samples import ARM, GEMM, HASWELL, SMALL, TARGET, some_programs, write_sample
from tests.records.dataset.test_importing import ansor_line, imported
from tilewright.cost_model import AnalyticalModel, CostModel, RandomModel, pairwise_accuracy
from tilewright.errors import UsageError
from tilewright.records.dataset import (
    Corpus,
    DatasetFolder,
    EvaluationData,
    NetworkTasks,
    RankingList,
    Split,
    evaluate,
    rate,
)
from tilewright.space import SpaceOptions


@pytest.fixture
def folder(tmp_path: Path) -> DatasetFolder:
    return write_sample(tmp_path / "data")


def data_of(folder: DatasetFolder, *hold_out: str, **options: Any) -> EvaluationData:
    return EvaluationData.of(Corpus.open([folder.path]), Split(hold_out=hold_out), **options)


def throughput(programs: RankingList) -> NDArray[np.float64]:
    return 1 / programs.latencies_s


def list_of(data: EvaluationData, task: str, device: str) -> RankingList:
    (found,) = (each for each in data.lists if (each.task, each.device) == (task, device))
    return found


def test_a_perfect_model_finds_all(folder: DatasetFolder) -> None:
    data = data_of(folder)
    perfect = rate("perfect", data, list(map(throughput, data.lists)))
    assert perfect.overall.top_1 == perfect.overall.top_5 == perfect.overall.pairwise == 1.0
    assert perfect.overall.peak_1 == perfect.overall.peak_5 == 1.0
    assert perfect.networks.keys() == {"both", "one[batch=4]"}
    assert perfect.devices.keys() == {"a72", "haswell-2t"}
    assert (perfect.overall.num_tasks, perfect.overall.num_missing_tasks) == (4, 0)


def test_latencies_of_tasks_are_weighted_and_summed_over_networks(folder: DatasetFolder) -> None:
    """Both tasks have latencies of 1 ms, 2 ms, ...; of one the third is liked best, of the other the first."""
    data = data_of(folder, devices=["a72"])
    likes = {GEMM.hash: 3.0, SMALL.hash: 1.0}
    scores = [-np.abs(each.latencies_s * 1e3 - likes[each.task]) for each in data.lists]
    scores = [np.where(np.isfinite(mine), mine, -100.0) for mine in scores]
    found = rate("model", data, scores)
    assert found.networks["both"].top_1 == pytest.approx((3 * 1 + 1) / (3 * 3 + 1))
    assert found.networks["one[batch=4]"].top_1 == pytest.approx(1 / 3)
    assert found.overall.top_1 == found.devices["a72"].top_1 == pytest.approx((4 + 1) / (10 + 3))
    assert found.overall.top_5 == 1.0
    assert found.overall.peak_1 == pytest.approx((1 / 3 + 1) / 2)
    pairs = [pairwise_accuracy(mine, throughput(each)) for each, mine in zip(data.lists, scores, strict=True)]
    assert found.overall.pairwise == pytest.approx(np.mean(pairs))


def test_a_network_on_two_devices_is_summed(folder: DatasetFolder) -> None:
    data = data_of(folder, "one")
    factors = {"a72": 1.0, "haswell-2t": -1.0}
    found = rate("model", data, [factors[each.device] * throughput(each) for each in data.lists])
    slowest_ms = 12.0  # a failure has the lowest throughput, so here it is liked best, and stands for the slowest
    assert found.devices["a72"].top_1 == 1.0
    assert found.devices["haswell-2t"].top_1 == pytest.approx(1 / slowest_ms)
    assert found.networks["one[batch=4]"].top_1 == pytest.approx(2 / (1 + slowest_ms))


def test_a_random_model_gives_what_it_finds_on_average(folder: DatasetFolder) -> None:
    found = evaluate(RandomModel(seed=1), data_of(folder, "one", devices=["a72"]))
    programs = list_of(data_of(folder), GEMM.hash, "a72").latencies_s
    ran = programs[np.isfinite(programs)]
    assert found.overall.top_1 == pytest.approx(1e-3 / np.where(np.isfinite(programs), programs, ran.max()).mean())
    assert found.overall.pairwise == 0.5


def test_a_model_is_rated_by_its_scores(folder: DatasetFolder) -> None:
    data = data_of(folder)
    model = AnalyticalModel()
    found = evaluate(model, data)
    assert found == rate("analytical", data, [each.scores(model) for each in data.lists])
    assert 0 < found.overall.top_1 <= found.overall.top_5 <= 1
    assert evaluate(model, data, "another name").model == "another name"


def test_held_out_networks_alone_are_evaluated(folder: DatasetFolder) -> None:
    data = data_of(folder, "one")
    assert [network.title for network in data.networks] == ["one[batch=4]"] * 2
    assert {each.task for each in data.lists} == {GEMM.hash}


def test_of_a_share_of_the_tasks_networks_have_those_alone(folder: DatasetFolder) -> None:
    corpus = Corpus.open([folder.path])
    share = next(s for s in range(1, 100) if len(Split(hold_out=(f"{s}%",)).held_out(corpus)) == 1)
    (kept,) = Split(hold_out=(f"{share}%",)).held_out(corpus)
    data = data_of(folder, f"{share}%")
    assert {each.task for each in data.lists} == {kept}
    assert all(network.num_missing == 0 for network in data.networks)


def test_workloads_count_if_they_are_asked_for_named_or_alone(folder: DatasetFolder) -> None:
    folder.add_network(NetworkTasks("gmm:16x16x16", {SMALL.hash: 1}, "warm", is_workload=True))
    assert "gmm:16x16x16" not in {network.title for network in data_of(folder).networks}
    assert "gmm:16x16x16" in {network.title for network in data_of(folder, workloads=True).networks}
    assert {network.title for network in data_of(folder, "gmm:16x16x16").networks} == {"gmm:16x16x16"}
    for path in (folder.path / "networks").glob("[bo]*.json"):
        path.unlink()
    assert {network.title for network in data_of(folder).networks} == {"gmm:16x16x16"}


def test_a_task_is_taken_in_the_context_of_the_network(folder: DatasetFolder) -> None:
    some_programs(GEMM, 5).write(folder.part(HASWELL, GEMM, "cold-8M").path, GEMM, "cold-8M")
    data = data_of(folder, devices=["haswell-2t"])
    both, one = data.networks
    assert {each.context for each in both.weights if each.task == GEMM.hash} == {"cold-8M"}
    assert {each.context for each in one.weights} == {"warm"}


def test_tasks_that_were_not_measured_or_never_ran_are_missing(folder: DatasetFolder) -> None:
    folder.part(HASWELL, SMALL, "warm").path.unlink()
    found = evaluate(RandomModel(), data_of(folder))
    assert found.networks["both"].num_tasks == 3
    assert found.networks["both"].num_missing_tasks == found.devices["haswell-2t"].num_missing_tasks == 1
    folder.part(HASWELL, GEMM, "warm").path.unlink()
    assert {network.device for network in data_of(folder).networks} == {"a72"}
    with pytest.raises(UsageError, match=r"no task of one\[batch=4\] has programs that ran on haswell-2t"):
        data_of(folder, "one", devices=["haswell-2t"])


def test_a_network_that_datasets_cut_otherwise_counts_once_on_each_device(
    folder: DatasetFolder, tmp_path: Path
) -> None:
    """Of a later version, which cut "both" into one task, on another device."""
    later = DatasetFolder.create(tmp_path / "later")
    device = later.add_device(replace(HASWELL, name="haswell-1t", threads=1))
    programs = some_programs(GEMM, options=SpaceOptions(TARGET, 1))
    programs.write(later.part(device, later.add_task(GEMM), "warm").path, GEMM, "warm")
    later.add_network(NetworkTasks("both", {GEMM.hash: 2}, "warm"))
    for hold_out in ((), ("both",)):
        data = EvaluationData.of(Corpus.open([folder.path, later.path]), Split(hold_out=hold_out))
        found = {
            (each.device, sum(each.weights.values())): each.num_missing
            for each in data.networks
            if each.title == "both"
        }
        assert found == {("a72", 4): 0, ("haswell-2t", 4): 0, ("haswell-1t", 2): 0}


def test_a_dataset_that_has_lost_its_networks_says_so(folder: DatasetFolder) -> None:
    for path in (folder.path / "networks").iterdir():
        path.unlink()
    with pytest.raises(UsageError, match="models are rated on networks, and the datasets name none; restore"):
        data_of(folder)


def test_what_holds_out_nothing_says_so(folder: DatasetFolder, tmp_path: Path) -> None:
    folder.add_network(NetworkTasks("views", {}, "warm"))
    with pytest.raises(UsageError, match="views holds out none of 2 tasks"):
        data_of(folder, "views")
    imported(tmp_path / "logs", "v100", ansor_line([1]), ansor_line([2], 2e-3))
    with pytest.raises(UsageError, match="0.01% holds out none of 1 tasks, and models are rated on those; hold out mo"):
        data_of(DatasetFolder(tmp_path / "logs"), "0.01%")


def test_a_log_of_failures_says_so(tmp_path: Path) -> None:
    imported(tmp_path / "data", "v100", ansor_line([1], error=4))
    with pytest.raises(UsageError, match="no task of the datasets has programs that ran on any device"):
        data_of(DatasetFolder(tmp_path / "data"))


def test_networks_of_logs_are_named_by_shares(tmp_path: Path) -> None:
    imported(tmp_path / "data", "v100", ansor_line([1]))
    with pytest.raises(UsageError, match="they have none, as logs of other tools; hold out a share of the tasks"):
        data_of(DatasetFolder(tmp_path / "data"), "resnet50")


def test_a_log_is_a_network_of_its_own(tmp_path: Path) -> None:
    lines = [ansor_line([n + 1], (n + 1) * 1e-3, key=f'["h", {task}]') for task in range(4) for n in range(3)]
    imported(tmp_path / "data", "v100", *lines, ansor_line([9], 1e10, error=4, key='["never ran", 1]'))
    data = data_of(DatasetFolder(tmp_path / "data"))
    (network,) = data.networks
    assert (network.title, network.device, network.num_missing) == ("v100", "v100", 0)
    assert list(network.weights.values()) == [1] * 4
    found = rate("worst", data, [-throughput(each) for each in data.lists])
    assert found.networks["v100"].top_1 == pytest.approx(1 / 3)


def test_a_model_that_reads_more_than_primitives_cannot_be_rated_on_a_log(tmp_path: Path) -> None:
    imported(tmp_path / "data", "v100", ansor_line([1]), ansor_line([2], 2e-3))
    data = data_of(DatasetFolder(tmp_path / "data"))
    assert evaluate(RandomModel(), data).overall.pairwise == 0.5
    with pytest.raises(UsageError, match="the encoder estimate reads more of them"):
        evaluate(AnalyticalModel(), data)


def test_named_networks_leave_logs_out(folder: DatasetFolder) -> None:
    imported(folder.path, "v100", ansor_line([1]), ansor_line([2], 2e-3))
    assert {network.device for network in data_of(folder, "one").networks} == {"a72", "haswell-2t"}
    assert {network.device for network in data_of(folder).networks} == {"a72", "haswell-2t", "v100"}


def test_unknown_devices_are_refused(folder: DatasetFolder) -> None:
    with pytest.raises(UsageError, match="the device 'm1' is in none of the datasets"):
        data_of(folder, devices=["m1"])
    with pytest.raises(UsageError, match=r"devices is 'a72'; it must be a list, such as \['a72'\]"):
        data_of(folder, devices="a72")


def test_an_evaluation_goes_through_json(folder: DatasetFolder) -> None:
    found = evaluate(AnalyticalModel(), data_of(folder)).to_json()
    assert json.loads(json.dumps(found)) == found
    assert found.keys() >= {"model", "top_1", "top_5", "pairwise", "networks"}
    assert found["networks"]["both"].keys() >= {"top_1", "top_5", "pairwise"}
    assert data_of(folder).num_programs == 48
    assert ARM.name in found["devices"]


@dataclass(kw_only=True, eq=False)
class Nonsense(AnalyticalModel):
    def _score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.full(len(values), np.nan)


def test_scores_that_are_no_numbers_are_refused(folder: DatasetFolder) -> None:
    model: CostModel = Nonsense()
    with pytest.raises(UsageError, match="scores are finite numbers, got nan"):
        evaluate(model, data_of(folder))


@dataclass(kw_only=True, eq=False)
class KnowsDevices(AnalyticalModel):
    sign: float = 1.0

    def on_device(self, device: str) -> KnowsDevices:
        return KnowsDevices(sign=-1.0) if device == "a72" else self

    def _score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        return self.sign * super()._score(values)


def test_a_model_that_knows_devices_is_asked_for_the_one_of_the_list(folder: DatasetFolder) -> None:
    data, model = data_of(folder), KnowsDevices()
    here, there = list_of(data, GEMM.hash, "haswell-2t"), list_of(data, GEMM.hash, "a72")
    np.testing.assert_array_equal(here.scores(model), here.scores(AnalyticalModel()))
    np.testing.assert_array_equal(there.scores(model), -there.scores(AnalyticalModel()))
