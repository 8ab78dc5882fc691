"""What is known of other tasks when one is tuned: from a prior, from the record file, and from tasks of the same run.

f = f_global + f_known + f_local. The global model is the one that was chosen, or that of the prior: it has learned
before. What it gets wrong of other tasks is learned once, by trees that are believed as far as they predict tasks that
were left out. What both get wrong of the task at hand is learned while it is tuned, and what proves to be wrong of them
there counts the less, the more is measured: see `ResidualModel`.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

from tilewright.cost_model import (
    AnalyticalModel,
    BoostedTrees,
    CostModel,
    Dataset,
    Group,
    RandomModel,
    ResidualModel,
    options_of_many_tasks,
    shipped,
)
from tilewright.errors import RecordFormatError, UsageError
from tilewright.features import CurveEncoder, StatementEncoder
from tilewright.records import Record, RecordLog, for_target, read_tasks
from tilewright.target import Target, stands_for
from tilewright.tuning.prior import Prior, known_programs
from tilewright.tuning.scoring import Scoring

# So many programs of other tasks are learned from where nobody asked for it: more take longer, and say little more.
MOST_PROGRAMS = 512
LEAST_PROGRAMS = 16
# A task of a record file costs its derivation: so there is one for so many trials, and no more than so many in all.
TRIALS_OF_A_TASK, MOST_TASKS = 16, 8
# What is known of other tasks is learned anew once it has grown by so much.
_GROWTH = 2.0
_LOGGER = logging.getLogger(__name__)


class History:
    """Programs of other tasks, and the models of new tasks that know them.

    `model` is the one that tuning was told to use. Without a prior, one that learns in a moment uses what there is of
    other tasks; those that take longer, and those that learn nothing, are left as they are.
    """

    def __init__(self, model: CostModel, prior: Prior | None = None, seed: int = 0) -> None:
        self._prior = Prior() if prior is None else prior
        self._known_options = _known_options(model, seed)
        self._recorded = Dataset()
        self._followed: list[Scoring] = []
        self._known: ResidualModel | None = None
        self._num_learned = 0
        learns_late = not model.is_fitted
        self._global, self._local = _parts_of(model, self._prior, seed)
        is_trained_on_it = learns_late and self._global is model
        self._given = () if is_trained_on_it else self._prior.dataset.groups
        self._is_global_new = is_trained_on_it or self._prior.model is not None

    def follow(self, scoring: Scoring) -> None:
        """What is measured of a task is known to those that begin later."""
        self._followed.append(scoring)

    def read(
        self, log: RecordLog, records: Sequence[Record], target: Target, threads: int, own: Collection[str], trials: int
    ) -> None:
        """Take up the records of tasks other than `own` on the same device; `trials` says how much that may cost."""
        others = [r for r in for_target(records, target) if r.threads == threads and r.task not in own]
        if self._local is None or not others:
            return
        try:
            tasks = read_tasks(log.path)
        except RecordFormatError as error:
            _LOGGER.info("other tasks of %s are not learned from: %s", log.path, error)
            return
        counts = Counter(record.task for record in others if record.task in tasks and record.latency_s is not None)
        chosen = {task for task, _ in counts.most_common(max(1, min(trials // TRIALS_OF_A_TASK, MOST_TASKS)))}
        self._recorded = known_programs(others, {task: tasks[task] for task in chosen}, MOST_PROGRAMS)

    def model(self) -> CostModel | None:
        """A model for a task of which nothing is measured; None where nothing is known that it could use."""
        if self._global is None or self._local is None:
            return None
        known = self._learn(self._global)
        return None if known is None else self._local(known)

    def _learn(self, model: CostModel) -> CostModel | None:
        """The global model with what is known of other tasks; None where that is nothing new."""
        dataset = self._dataset()
        if self._known is not None and len(dataset) < _GROWTH * self._num_learned:
            return self._known
        if dataset.num_valid >= LEAST_PROGRAMS:
            begun_s = time.monotonic()
            self._known = ResidualModel.over(model, **self._known_options)
            self._known.fit(dataset)
            self._num_learned = len(dataset)
            num_tasks, took_s = len({group.subject for group in dataset.groups}), time.monotonic() - begun_s
            _LOGGER.info(
                "learned from %d programs of %d other tasks in %.2f s; believed by %.0f %%",
                *(len(dataset), num_tasks, took_s, 100 * self._known.share_),
            )
        return self._known or (model if self._is_global_new else None)

    def _dataset(self) -> Dataset:
        """All of the prior and of the record file, and as much of each task of the run as there is room for.

        What the global model itself was trained on is not among it: it would seem to get nothing wrong there.
        """
        groups = [*self._given, *self._recorded.groups]
        begun = [scoring for scoring in self._followed if scoring.dataset.groups]
        quota = MOST_PROGRAMS // max(1, len(begun))
        for scoring in begun:
            groups += _first(scoring.dataset.groups, quota)
        return Dataset(tuple(groups))


def warn_of_devices(prior: Prior, target: Target, threads: int) -> None:
    """Say so where all programs of a prior were measured on other devices than the one that is tuned for."""
    devices = [group.population.sketch.options for group in prior.dataset.measured]
    is_known = any(o.threads == threads and (o.target == target or stands_for(str(o.target), target)) for o in devices)
    if devices and not is_known:
        warnings.warn(
            f"the prior was measured on {', '.join(prior.devices)}, and tuning is for {threads} threads of "
            f"{target.cpu}; what it says is used as far as it carries over",
            stacklevel=3,
        )


def _parts_of(
    model: CostModel, prior: Prior, seed: int
) -> tuple[CostModel | None, Callable[[CostModel], CostModel] | None]:
    """The global model, and what makes a local one over it; neither where nothing of other tasks is used."""
    if isinstance(model, AnalyticalModel | RandomModel):
        if prior.model is not None or prior.dataset.groups:
            raise UsageError(
                f"the cost model {model.name} learns nothing, and so has no use for a prior; leave one out"
            )
        return None, None
    if isinstance(model, ResidualModel):
        return _only(model.base, prior), model.over_another
    if isinstance(model, BoostedTrees) and not model.is_fitted:
        features = model.features

        def over(known: CostModel) -> CostModel:
            shape = {"num_trees": 32, "max_depth": 3, "learning_rate": 0.2}
            local = {"features": features, **shape, "l2": 1.0, "min_weight": 1.0}
            return ResidualModel.over(known, local_options=local, seed=seed)

        return prior.model or AnalyticalModel(), over
    if model.is_fitted:
        return _only(model, prior), lambda known: ResidualModel.over(known, seed=seed)
    if prior.model is not None:
        raise UsageError(
            f"cost_model is {model.name}, which learns from the prior's programs or from the task, and the prior has a "
            f"trained model, {prior.model.name}, which would take its place; give one of them"
        )
    if not prior.dataset.groups:
        return None, None
    begun_s = time.monotonic()
    model.fit(prior.dataset)
    _LOGGER.info("trained %s on the prior, %s, in %.1f s", model.name, prior, time.monotonic() - begun_s)
    return model, lambda known: ResidualModel.over(known, seed=seed)


def _only(model: CostModel, prior: Prior) -> CostModel:
    """The trained model that was chosen, or that of a prior in the place of the one that ships, or of one that knows
    nothing of any program.
    """
    if prior.model is None:
        return model
    if model is not shipped() and not isinstance(model, AnalyticalModel | RandomModel):
        raise UsageError(
            f"cost_model is {model.name}, which is trained, and so is the model of the prior, {prior.model.name}; give "
            f"one of them"
        )
    return prior.model


def _known_options(model: CostModel, seed: int) -> dict[str, Any]:
    """Of what is learned of other tasks: from features that mean the same in all of them, and fast programs above all.

    Those of statements; trees that were told to read others read curves here as well, if not there.
    """
    is_other = isinstance(model, BoostedTrees) and model.features != StatementEncoder.name
    return {**options_of_many_tasks(CurveEncoder.name if is_other else StatementEncoder.name), "seed": seed}


def _first(groups: Sequence[Group], quota: int) -> list[Group]:
    """Whole groups, whose programs are encoded already, until they have so many programs."""
    found: list[Group] = []
    for group in groups:
        if sum(map(len, found)) >= quota:
            break
        found.append(group)
    return found
