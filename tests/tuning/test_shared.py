"""One cost model over several devices: what one measures of a task changes how programs are ranked for the other."""

from __future__ import annotations

import numpy as np

from tilewright import workloads
from tilewright.cost_model import BoostedTrees, ResidualModel, find
from tilewright.space import Candidate, Population
from tilewright.target import Target
from tilewright.tuning.shared import MOST_PROGRAMS, SharedTrials
from tilewright.tuning.tuner import Tuner

TASK = workloads.parse("gmm:48x48x48")
WIDE, NARROW = (Target.parse(f"llvm -mcpu={cpu} -num-cores=2") for cpu in ("skylake-avx512", "haswell"))


def tuner(target: Target, shared: SharedTrials | None) -> Tuner:
    return Tuner(TASK, target, 2, search="random", shared=shared)


def drawn(of: Tuner, number: int, seed: int = 0) -> list[Candidate]:
    rng = np.random.default_rng(seed)
    sketch = of.sketches[0]
    return list(sketch.sample(rng, number))


def upside_down(of: Tuner, candidates: list[Candidate]) -> list[float]:
    """Latencies by which the programs that the model likes best are the slowest."""
    scores = of.scoring.scores(Population.of(candidates))
    return [float(1e-3 * np.exp(score - scores.max())) for score in scores]


def test_a_measurement_on_one_device_changes_the_ranking_on_the_other() -> None:
    shared = SharedTrials()
    wide, narrow, alone = tuner(WIDE, shared), tuner(NARROW, shared), tuner(NARROW, None)
    tried = Population.of(drawn(narrow, 64, seed=1))
    before = narrow.scoring.scores(tried)
    assert np.allclose(before, alone.scoring.scores(Population.of(drawn(alone, 64, seed=1))))
    candidates = drawn(wide, 48)
    wide.scoring.learn(candidates, upside_down(wide, candidates))
    assert np.allclose(narrow.scoring.scores(tried), before)  # until it asks
    narrow.scoring.catch_up()
    after = narrow.scoring.scores(tried)
    assert np.corrcoef(before, after)[0, 1] < 0.9
    assert not narrow.records


def test_what_its_own_device_measures_counts_more_than_what_others_do() -> None:
    """Both devices measured the same programs, with opposite results."""
    shared = SharedTrials()
    wide, narrow = tuner(WIDE, shared), tuner(NARROW, shared)
    theirs, own = drawn(wide, 48), drawn(narrow, 48)
    truth = np.random.default_rng(3).permutation(48)
    narrow.scoring.learn(own, [1e-3 * 1.05**rank for rank in truth])
    wide.scoring.learn(theirs, [1e-3 * 1.05**-rank for rank in truth])
    narrow.scoring.catch_up()
    scores = narrow.scoring.scores(Population.of(own))
    assert np.corrcoef(scores, truth)[0, 1] < 0


def test_only_the_newest_programs_of_others_are_learned_from() -> None:
    shared = SharedTrials()
    wide, narrow = tuner(WIDE, shared), tuner(NARROW, shared)
    for seed in range(MOST_PROGRAMS // 64 + 2):
        wide.scoring.dataset = wide.scoring.dataset.with_trials(drawn(wide, 64, seed), [1e-3] * 64, "warm", "wide")
    found = shared.of_others(TASK.hash, "warm", narrow.scoring)
    assert sum(map(len, found)) == MOST_PROGRAMS
    assert found[0] is wide.scoring.dataset.groups[-1]
    assert shared.of_others("another task", "warm", narrow.scoring) == ()


def test_trees_over_several_devices_tell_them_apart() -> None:
    """The same programs, fast on one device and slow on the other."""
    wide, narrow = tuner(WIDE, None), tuner(NARROW, None)
    trees = BoostedTrees(features="statements+hardware", num_trees=60, min_weight=1.0)
    dataset = wide.scoring.dataset
    truth = np.random.default_rng(0).permutation(32)
    for of, sign, device in ((wide, 1, "wide"), (narrow, -1, "narrow")):
        dataset = dataset.with_trials(drawn(of, 32), [1e-3 * 1.1 ** (sign * rank) for rank in truth], "warm", device)
    trees.fit(dataset)
    for of, sign in ((wide, -1), (narrow, 1)):
        scores = trees.predict(Population.of(drawn(of, 32)))
        assert sign * np.corrcoef(scores, truth)[0, 1] > 0.5


def test_a_model_of_several_devices_reads_what_the_device_is() -> None:
    model = find("default", 0)
    assert isinstance(model, ResidualModel)
    own = model.reading_devices().on_device("b")
    assert own.device == "b"
    assert own.local_options["features"] == "statements+hardware"
    assert own.encoder == model.encoder  # the one that ships reads the device anyway
    assert model.device == ""
