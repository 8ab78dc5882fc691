"""What is known of other tasks: read from records and models, learned once, and used by tasks that begin."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.tuning.fake_measurer import FakeMeasurer
from tilewright.cost_model import (
    AnalyticalModel,
    BoostedTrees,
    CostModel,
    Dataset,
    Logged,
    Measured,
    Mlp,
    RandomModel,
    ResidualModel,
    find,
    pairwise_accuracy,
    shipped,
)
from tilewright.errors import RecordFormatError, UsageError
from tilewright.features import create_encoder
from tilewright.measure import OK, RUN_ERROR, Measurement
from tilewright.records import RecordLog, names_of, read_records
from tilewright.records.record import Record
from tilewright.schedule import Trace
from tilewright.search import EvolutionarySearch
from tilewright.space import Population, SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.history import MOST_PROGRAMS, MOST_TASKS, History
from tilewright.tuning.prior import Prior, read_prior, thinned
from tilewright.tuning.scoring import Scoring
from tilewright.tuning.task_scheduler import Network, TaskScheduler, WeightedTask
from tilewright.tuning.tuner import tune
from tilewright.workloads import parse

TARGET = Target.parse("llvm -mcpu=haswell -num-cores=2")
OTHER = Target.parse("llvm -mcpu=neoverse-n1 -num-cores=4")
THREADS = 2
GEMMS = [parse(f"gmm:{n}x{m}x{k}") for n, m, k in ((48, 64, 32), (64, 64, 64), (96, 32, 64), (32, 96, 48))]
CONV = parse("c2d:1x8x8x16,16,3x3,s1,p1")
NEW = parse("gmm:80x64x96")


def log_latency(population: Population) -> NDArray[np.float64]:
    """What the analytical model says, but long vectors are slower than it thinks, most of all from 9 lanes on."""
    statements = create_encoder("curves").encode(population)
    vectorized = statements[:, :, create_encoder("curves").columns.index("vectorized")].max(axis=1)
    latencies: NDArray[np.float64] = (
        -AnalyticalModel().predict(population) + 0.2 * vectorized + 0.5 * (vectorized > np.log2(9.5))
    )
    return latencies


def programs(task: Task, num: int, target: Target = TARGET, threads: int = THREADS) -> list[Population]:
    rng = np.random.default_rng(num)
    return [sketch.sample(rng, num) for sketch in derive(task, SpaceOptions(target, threads))]


def records_of(task: Task, num: int = 8, target: Target = TARGET, threads: int = THREADS) -> list[Record]:
    """As another run would have written them."""
    return [
        Record(
            task=task.hash,
            workload="",
            target=str(target),
            threads=threads,
            trace=population.trace(n),
            status=OK,
            latency_s=float(np.exp(log_latency(population)[n]) * 1e-9),
            names=names_of(task),
        )
        for population in programs(task, num, target, threads)[:3]
        for n in range(len(population))
    ]


def write(path: Path, tasks: list[Task], target: Target = TARGET, threads: int = THREADS) -> Path:
    for task in tasks:
        RecordLog(path).extend(records_of(task, target=target, threads=threads), task)
    return path


@pytest.fixture(scope="module")
def history_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("history") / "gemms.jsonl", GEMMS)


@pytest.fixture(scope="module")
def known(history_file: Path) -> Prior:
    return read_prior(history_file)


def quality(model: CostModel, task: Task = NEW) -> float:
    """The throughput of the 16 programs that it likes most, on average, relative to the best of all."""
    populations = programs(task, 60)
    latencies = np.exp(np.concatenate([log_latency(population) for population in populations]))
    scores = np.concatenate([model.predict(population) for population in populations])
    return float(np.mean(latencies.min() / latencies[np.argsort(-scores)[:16]]))


# --- reading ----------------------------------------------------------------------------------------------------------


def test_records_are_programs_of_the_tasks_that_their_file_holds(history_file: Path, known: Prior) -> None:
    assert len(known.dataset) == len(list(read_records(history_file)))
    assert {group.task_hash for group in known.dataset.groups} == {task.hash for task in GEMMS}
    assert str(known) == f"{len(known.dataset)} programs of 4 tasks on 2 threads of haswell"


def test_a_pattern_names_several_files_and_the_records_file_is_not_among_them(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.jsonl", GEMMS[:1]), write(tmp_path / "b.jsonl", GEMMS[1:2])
    both = read_prior(f"{tmp_path}/*.jsonl")
    assert len(both.dataset) == len(read_prior([first, str(second)]).dataset) > len(read_prior(first).dataset)
    assert len(read_prior(f"{tmp_path}/*.jsonl", leave_out=second).dataset) == len(read_prior(first).dataset)
    assert str(read_prior(second, leave_out=second)) == "nothing"


def test_a_file_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    records, model = write(tmp_path / "a.jsonl", GEMMS[:1]), tmp_path / "model.npz"
    shipped().save(model)
    once = read_prior([records, model])
    assert str(read_prior([records, f"{tmp_path}/*", str(model)])) == str(once)


def test_models_and_datasets_are_taken_as_they_are(tmp_path: Path, known: Prior) -> None:
    model = BoostedTrees(num_trees=2)
    model.fit(known.dataset)
    model.save(tmp_path / "model.npz")
    (tmp_path / "model.npz").rename(tmp_path / "model")
    for given in (model, tmp_path / "model"):
        found = read_prior([given, known.dataset])
        assert found.model is not None
        assert found.model.options == model.options
        assert len(found.dataset) == len(known.dataset)
        assert str(found).startswith("the model boosted-trees and ")
    assert read_prior(known) is known


def test_of_many_records_fast_and_slow_ones_of_each_task_are_kept() -> None:
    records = [r for task in GEMMS[:2] for r in records_of(task, 30)]
    kept = thinned(records, 60)
    for task in GEMMS[:2]:
        times = sorted(r.rank_s for r in records if r.task == task.hash)
        mine = [r.rank_s for r in kept if r.task == task.hash]
        assert len(mine) == 30
        assert (min(mine), max(mine)) == (times[0], times[-1])
    assert thinned([], 60) == []


def header_only(path: Path) -> None:
    RecordLog(path).append(records_of(GEMMS[0])[0])
    path.write_text(path.read_text().splitlines()[0] + "\n")


def failures_only(path: Path) -> None:
    failed = [replace(r, status=RUN_ERROR, latency_s=None) for r in records_of(GEMMS[0])]
    RecordLog(path).extend(failed, GEMMS[0])


def no_tasks(path: Path) -> None:
    RecordLog(path).extend(records_of(GEMMS[0]))


def foreign_programs(path: Path) -> None:
    records = [replace(r, trace=Trace((replace(r.trace.steps[0], stage="nowhere"),))) for r in records_of(GEMMS[0])]
    RecordLog(path).extend(records, GEMMS[0])


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (header_only, "have 0 records, 0 of programs that ran, 0 tasks"),
        (failures_only, "records, 0 of programs that ran, 1 tasks"),
        (no_tasks, "of programs that ran, 0 tasks, and no program of theirs"),
        (foreign_programs, "1 tasks, and no program of theirs; give records"),
    ],
)
def test_records_without_a_program_to_learn_from_are_refused(
    made: Callable[[Path], None], told: str, tmp_path: Path
) -> None:
    made(tmp_path / "prior.jsonl")
    with pytest.raises(UsageError, match=told):
        read_prior(tmp_path / "prior.jsonl")


def test_files_that_are_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"prior is '.*missing.jsonl', and there is no such file; it must be the path"):
        read_prior(tmp_path / "missing.jsonl")
    with pytest.raises(UsageError, match=r"prior is '.*\*.jsonl', and no file matches it"):
        read_prior(f"{tmp_path}/*.jsonl")
    with pytest.raises(UsageError, match=r"prior is the folder .*; name the files in it, such as .*\*.jsonl"):
        read_prior(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe, which is a device or a pipe; name a file"):
        read_prior(tmp_path / "pipe")
    (tmp_path / "text.jsonl").write_text("hello\n")
    with pytest.raises(RecordFormatError, match="text.jsonl:1: a record file begins with"):
        read_prior(tmp_path / "text.jsonl")
    (tmp_path / "model.npz").write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(UsageError, match="model.npz is not the file of a cost model"):
        read_prior(tmp_path / "model.npz")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(UsageError, match="have 0 records"):
        read_prior(tmp_path / "empty.jsonl")
    write(tmp_path / "broken.jsonl", GEMMS[:1])
    lines = (tmp_path / "broken.jsonl").read_text().splitlines()
    (tmp_path / "broken.jsonl").write_text("\n".join([*lines[:4], '{"task": 3}', *lines[4:]]) + "\n")
    with pytest.raises(RecordFormatError, match="broken.jsonl:5: "):
        read_prior(tmp_path / "broken.jsonl")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (3, "prior is 3; it must be the path of a record file, a pattern"),
        ("", "prior is ''; it must be"),
        (b"a.jsonl", "prior is b'a.jsonl'; it must be"),
        ([], "prior is an empty list"),
        (["default", 3], "prior is 'default', and there is no such file"),
        (BoostedTrees(), "the model, boosted-trees, has learned nothing; train it first"),
        (AnalyticalModel(), "the model, analytical, has learned nothing"),
        (RandomModel(), "the model, random, has learned nothing"),
        (Dataset(), "got 0 programs of which 0 are such"),
        (Dataset((Logged((), np.ones(3), "t", "d"),)), "got 3 programs of which 0 are such"),
    ],
)
def test_what_is_no_prior_is_refused(given: object, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_prior(given)


def test_two_models_are_too_many() -> None:
    with pytest.raises(UsageError, match="at most one model, got factor-trees, factor-trees; give one"):
        read_prior([shipped(), shipped()])


# --- learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["default", "boosted-trees", "boosted-trees:features=curves,objective=rank"])
def test_what_other_tasks_teach_ranks_a_new_one_better(name: str, known: Prior) -> None:
    before = find(name)
    base = quality(before if before.is_fitted else AnalyticalModel())
    model = History(before, known).model()
    assert isinstance(model, ResidualModel)
    assert quality(model) > base + 0.05


def test_what_ships_is_not_lost_and_not_changed(known: Prior) -> None:
    model = History(find("default"), known).model()
    assert isinstance(model, ResidualModel)
    assert isinstance(model.base, ResidualModel)
    assert model.base.base is shipped()
    other = History(find("default"), known).model()
    assert isinstance(other, ResidualModel)
    assert quality(other) == quality(model)


def test_what_does_not_carry_over_is_not_believed() -> None:
    """Latencies that have nothing to do with programs teach nothing of other tasks."""
    rng = np.random.default_rng(0)
    groups = [Measured(p, rng.uniform(1, 2, len(p))) for task in GEMMS for p in programs(task, 12)]
    model = History(find("boosted-trees"), Prior(Dataset(tuple(groups)))).model()
    assert isinstance(model, ResidualModel)
    assert isinstance(model.base, ResidualModel)
    assert model.base.share_ < 0.2


def test_the_local_model_corrects_what_a_prior_of_another_world_says(known: Prior) -> None:
    model = History(find("boosted-trees"), known).model()
    assert model is not None
    (first, *_) = programs(NEW, 200)
    truth = AnalyticalModel().predict(first)  # long vectors are no slower here
    before = pairwise_accuracy(model.predict(first[64:]), truth[64:])
    model.update(Dataset((Measured(first[:64], np.exp(-truth[:64]) * 1e-9),)))
    after = pairwise_accuracy(model.predict(first[64:]), truth[64:])
    assert after > before + 0.03


def test_a_model_as_prior_takes_the_place_of_what_ships(known: Prior) -> None:
    trained = BoostedTrees(num_trees=3)
    trained.fit(known.dataset)
    for name in ("default", "boosted-trees", "residual"):
        model = History(find(name), Prior(model=trained)).model()
        assert isinstance(model, ResidualModel)
        assert model.base is trained
        both = History(find(name), Prior(known.dataset, trained)).model()
        assert isinstance(both, ResidualModel)
        assert isinstance(both.base, ResidualModel)
        assert both.base.base is trained
    with pytest.raises(
        UsageError, match="cost_model is boosted-trees, which is trained, and so is the model of the pri"
    ):
        History(trained, Prior(model=trained))


def test_a_model_that_is_to_learn_is_not_left_out_for_one_that_has(known: Prior) -> None:
    trained = BoostedTrees(num_trees=3)
    trained.fit(known.dataset)
    net = Mlp(width=8, num_blocks=1, epochs=1)
    for prior in (Prior(model=trained), Prior(known.dataset, trained)):
        with pytest.raises(UsageError, match=r"cost_model is mlp, which learns .* boosted-trees, which would take its"):
            History(net, prior)
    assert not net.is_fitted


@pytest.mark.parametrize("name", ["analytical", "random"])
def test_a_model_that_learns_nothing_has_no_use_for_a_prior(name: str, known: Prior) -> None:
    with pytest.raises(UsageError, match=f"the cost model {name} learns nothing, and so has no use for a prior"):
        History(find(name), known)
    assert History(find(name)).model() is None


def test_a_network_is_trained_on_a_prior_and_left_alone_without_one(known: Prior) -> None:
    net = Mlp(width=8, num_blocks=1, epochs=1)
    assert History(net).model() is None
    model = History(net, known).model()
    assert net.is_fitted
    assert isinstance(model, ResidualModel)
    assert model.base is net


def test_few_programs_of_other_tasks_are_not_enough() -> None:
    few = Dataset((Measured(programs(NEW, 8)[0], np.linspace(1, 2, 8)),))
    assert History(find("default"), Prior(few)).model() is None


def test_what_is_measured_of_a_task_is_known_to_those_that_begin_later(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="tilewright.tuning.history")
    history = History(find("default"))
    scorings = [Scoring(find("default")) for _ in GEMMS]
    for scoring in scorings:
        history.follow(scoring)
    assert history.model() is None
    for scoring, task in zip(scorings, GEMMS, strict=True):
        for population in programs(task, 16)[:2]:
            scoring.learn(list(population), (np.exp(log_latency(population)) * 1e-9).tolist())
    model = history.model()
    assert isinstance(model, ResidualModel)
    assert "learned from 128 programs of 4 other tasks in " in caplog.text
    again = history.model()
    assert isinstance(again, ResidualModel)
    assert again is not model
    assert again.base is model.base, "it is learned again when it has grown"


def test_no_more_is_learned_from_a_run_than_there_is_time_for() -> None:
    history = History(find("default"))
    for task in GEMMS:
        scoring = Scoring(RandomModel())
        history.follow(scoring)
        for population in programs(task, 100)[:3]:
            for start in range(0, 100, 10):
                scoring.learn(list(population[start : start + 10]), [1.0] * 10)
    assert len(history._dataset()) <= MOST_PROGRAMS + 10 * len(GEMMS)


# --- tuning -----------------------------------------------------------------------------------------------------------


def by_analysis(task: Task) -> Callable[[Trace], Measurement]:
    """Latencies like those of the records."""
    sketches = derive(task, SpaceOptions(TARGET, THREADS))

    def measured(trace: Trace) -> Measurement:
        found = next(filter(None, (sketch.candidate_of(trace) for sketch in sketches)))
        latency_s = float(np.exp(log_latency(Population.of([found]))[0]) * 1e-9)
        return Measurement(OK, latency_s, (latency_s,) * 3)

    return measured


def first_round(prior: object = None, records: Path | None = None, name: str = "default", trials: int = 16) -> float:
    """The best latency of few trials; the program of the untuned task is the first of them."""
    measurer = FakeMeasurer(TARGET, THREADS, by_analysis(NEW))
    result = tune(
        NEW,
        trials=trials,
        target=TARGET,
        threads=THREADS,
        records=records,
        cost_model=name,
        prior=prior,  # type: ignore[arg-type]
        search=EvolutionarySearch(population=512),
        measurer=measurer,
    )
    assert result.best.latency_s is not None
    return float(np.median([r.latency_s for r in result.records[1:] if r.latency_s is not None]))


@pytest.mark.parametrize("name", ["default", "boosted-trees"])
def test_the_first_round_is_better_with_a_prior(name: str, history_file: Path) -> None:
    assert first_round(history_file, name=name) < first_round(name=name)


def test_other_tasks_of_the_record_file_are_a_prior_by_themselves(history_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(history_file.read_bytes())
    assert first_round(records=path, trials=64) == first_round(history_file, trials=64)


@pytest.mark.parametrize(("target", "threads"), [(OTHER, THREADS), (TARGET, 1)])
def test_records_of_another_device_are_none_by_themselves(target: Target, threads: int, tmp_path: Path) -> None:
    path = write(tmp_path / "records.jsonl", GEMMS[:2], target, threads)
    assert first_round(records=path) == first_round()


def test_a_prior_of_another_device_is_used_with_a_warning(tmp_path: Path, history_file: Path) -> None:
    other = write(tmp_path / "other.jsonl", GEMMS, OTHER, 4)
    with pytest.warns(UserWarning, match="the prior was measured on 4 threads of neoverse-n1, and tuning is for 2 thr"):
        changed = first_round(other)
    assert changed != first_round()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first_round([other, history_file], trials=2)


def test_a_task_of_the_record_file_that_cannot_be_read_costs_the_history_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tilewright.tuning.history")
    path = write(tmp_path / "records.jsonl", GEMMS[:2])
    path.write_text(path.read_text().replace('"tilewright_task":"', '"tilewright_task":"0', 1))
    assert first_round(records=path) == first_round()
    assert "are not learned from" in caplog.text


def test_few_trials_look_at_few_tasks(history_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RecordLog(history_file)
    numbers = {}
    for trials in (1, 32, 10_000):
        history = History(find("default"))
        history.read(log, log.read(), TARGET, THREADS, {NEW.hash}, trials)
        numbers[trials] = len({group.task_hash for group in history._dataset().groups})
    assert numbers == {1: 1, 32: 2, 10_000: min(len(GEMMS), MOST_TASKS)}
    history = History(find("default"))
    history.read(log, log.read(), TARGET, THREADS, {task.hash for task in GEMMS}, 10_000)
    assert len(history._dataset()) == 0


def test_tasks_of_a_network_that_begin_later_know_the_earlier_ones(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="tilewright.tuning.history")
    network = Network("net", tuple(WeightedTask(task, 1) for task in GEMMS[:3]))
    scheduler = TaskScheduler([network], target=TARGET, threads=THREADS)
    scheduler.tune(trials=60, measurer=FakeMeasurer(TARGET, THREADS))
    assert "learned from 16 programs of 1 other tasks" in caplog.text


def test_a_network_takes_a_prior(history_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="tilewright.tuning.history")
    network = Network("net", (WeightedTask(NEW, 1),))
    scheduler = TaskScheduler([network], target=TARGET, threads=THREADS, prior=history_file)
    scheduler.tune(trials=4, measurer=FakeMeasurer(TARGET, THREADS))
    assert "programs of 4 other tasks" in caplog.text
    with pytest.raises(UsageError, match="there is no such file"):
        TaskScheduler([network], target=TARGET, threads=THREADS, prior="missing").tune(trials=4)
