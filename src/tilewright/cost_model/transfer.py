"""What is known of all programs, and what is learned of one task: f = f_global + f_local.

The global model knows many tasks and is not changed. The local one learns, from the few programs of a task that are
measured, what the global one gets wrong there; how much it counts is what it proves on programs that it has not seen.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.arguments import Range
from tilewright.cost_model.base import CostModel
from tilewright.cost_model.examples import Examples
from tilewright.cost_model.option_ranges import NOT_NEGATIVE, PART, SEEDS
from tilewright.cost_model.views import View, joined_encoder
from tilewright.errors import UsageError
from tilewright.features import Encoder, HardwareEncoder

Floats = NDArray[np.float64]
_GLOBAL, _LOCAL = "global:", "local:"


def _few_shallow_trees() -> dict[str, Any]:
    # A program's error counts alike, whatever it is: a weight below 1 would be for throughput.
    return {"num_trees": 16, "max_depth": 2, "learning_rate": 0.2, "l2": 1.0, "min_weight": 1.0}


def options_of_many_tasks(features: str) -> dict[str, Any]:
    """Options of a residual whose local model learns from many tasks, to rank programs of others, by such features.

    Fast programs count above all, and it is believed as far as it predicts tasks that were left out.
    """
    trees = {"num_trees": 24, "max_depth": 3, "learning_rate": 0.15, "l2": 1.0, "min_weight": 1.0}
    return {
        "local_options": {"features": features, **trees},
        "least_label": 0.4,
        "folds_of": "tasks",
        "num_folds": 3,
    }


@dataclass(kw_only=True, eq=False)
class ResidualModel(CostModel):
    """score = slope x global score + share x local score, both on the scale of log throughput.

    The slope is a regression of what was measured on the global score, held near the one that would make both spread
    alike. The local model learns what remains, as a regression; its share is how well models of parts of the data
    predict the rest of it, and is 0 if they do not. So with little data, or none that it can learn from, programs are
    ranked as the global model ranks them.

    `ResidualModel.over(model)` is one over a model that is there.
    """

    name: ClassVar[str] = "residual"
    ranges: ClassVar[Mapping[str, Range]] = {
        "least_label": PART,
        "prior_programs": NOT_NEGATIVE,
        "num_folds": Range(2, 1000, is_whole=True),
        "others_weight": NOT_NEGATIVE,
        "seed": SEEDS,
    }

    global_model: str = "analytical"
    global_options: dict[str, Any] = field(default_factory=dict)
    local_model: str = "boosted-trees"
    local_options: dict[str, Any] = field(default_factory=_few_shallow_trees)
    least_label: float = 0.05
    """A program that is slower than that, relative to the best, counts as if it ran at that; so does a failure."""
    prior_programs: float = 8.0
    """How many programs it takes to believe in another slope, or in the local model, by half."""
    num_folds: int = 4
    folds_of: str = "programs"
    """What is left out together, to see whether the local model predicts it: "programs", or all those of "tasks"."""
    device: str = ""
    """The device that it ranks programs for, where it learns from several; the others teach the local model alone."""
    others_weight: float = 0.25
    """How much a program of another device says of whether to believe the local model; its own say 1."""
    seed: int = 0
    """Of the local model, if it has one."""

    global_: CostModel | None = field(default=None, init=False, repr=False)
    local_: CostModel | None = field(default=None, init=False, repr=False)
    slope_: float = field(default=1.0, init=False, repr=False)
    share_: float = field(default=0.0, init=False, repr=False)

    @classmethod
    def over(cls, model: CostModel, **options: Any) -> ResidualModel:
        """A model whose global one is `model`, with other options as in the constructor."""
        made = cls(global_model=model.name, global_options=model.options, **options)
        made.global_ = model
        made.tasks_ = model.tasks_
        return made

    @classmethod
    def checked_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        known = super().checked_options(options)
        if known.get("local_model", cls.local_model) != cls.local_model:
            known.setdefault("local_options", {})  # those by default are of trees
        return known

    def over_another(self, model: CostModel) -> ResidualModel:
        """One with the same options, which has learned nothing yet, over another global model."""
        own = {name: value for name, value in self.options.items() if name not in ("global_model", "global_options")}
        return ResidualModel.over(model, **copy.deepcopy(own))

    def __deepcopy__(self, memo: dict[int, Any]) -> ResidualModel:
        """The global model is never changed: copies, such as those for each task of a network, share it."""
        made = ResidualModel(**copy.deepcopy(self.options, memo))
        made.global_ = self.global_
        made.local_ = copy.deepcopy(self.local_, memo)
        made.slope_, made.share_, made.tasks_ = self.slope_, self.share_, self.tasks_
        return made

    def on_device(self, device: str) -> ResidualModel:
        """The same for a device of that name."""
        made = copy.deepcopy(self)
        made.device = device
        made.global_ = self.base.on_device(device)
        return made

    def reading_devices(self) -> ResidualModel:
        """One that has learned nothing yet, whose local model reads the device beside what it reads now."""
        made = self.over_another(self.base)
        features = str(_create(self.local_model, self.local_options).options.get("features", ""))
        if features and HardwareEncoder.name not in features.split("+"):
            made.local_options = self.local_options | {"features": f"{features}+{HardwareEncoder.name}"}
        return made

    @property
    def encoder(self) -> Encoder:
        return joined_encoder([self.base.encoder, self._new_local().encoder])

    @property
    def is_fitted(self) -> bool:
        return self.base.is_fitted

    @property
    def verified_share(self) -> float:
        return self.base.verified_share

    @property
    def base(self) -> CostModel:
        """The global model."""
        if self.global_ is None:
            self.global_ = _create(self.global_model, self.global_options)
        return self.global_

    def _new_local(self) -> CostModel:
        model = _create(self.local_model, self.local_options)
        return _create(self.local_model, {"seed": self.seed} | self.local_options) if "seed" in model.options else model

    def check_parts(self) -> None:
        """That it can score and learn: the global model has learned, and the local one can be made and reads rows."""
        self._check_fitted()
        joined_encoder([self.base.encoder, self._new_local().encoder])

    # --- learning ---

    def fit_examples(self, examples: Examples) -> None:
        if len(examples) == 0:
            raise UsageError("a cost model learns from at least one program, got no examples; measure some first")
        self._check_fitted()
        self._check_ranges()
        self._check_columns(examples.num_features)
        own = View.of(self.base.encoder, self.encoder).examples(examples)
        known = self.base.score_examples(own)
        is_slow = examples.labels <= self.least_label
        is_own = self._is_own(examples)
        measured = np.log(np.maximum(examples.labels, self.least_label))
        slopes = self._slopes(known, measured, ~is_slow, examples, is_own)
        remainder = _centred(measured - slopes * known, examples.tasks, ~is_slow)
        # Of a slow program it is only known that it is no faster: a score below that is not wrong.
        remainder = np.where(is_slow, np.minimum(remainder, 0), remainder)
        local = View.of(self._new_local().encoder, self.encoder).examples(examples)
        if len(np.unique(measured[~is_slow])) < 2:
            remainder = np.zeros(len(examples))  # one speed says nothing of what makes programs differ
        local = replace(local, labels=remainder)
        share = self._believed(local, np.where(is_own, 1.0, self.others_weight))
        fitted = self._fitted_local(local) if share > 0 else None
        self.slope_, self.share_, self.local_ = float(slopes[is_own][0]), share, fitted  # at once: not parts of two

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise UsageError(
                f"the global model {self.global_model} of a residual has learned nothing yet, and is not changed by "
                f"fit; make one over a model that has: ResidualModel.over(model)"
            )

    def _check_columns(self, num_columns: int) -> None:
        if num_columns != len(self.encoder.columns):
            raise UsageError(
                f"the cost model {self.name} of {self.global_model} and {self.local_model} reads the "
                f"{len(self.encoder.columns)} columns of the encoder {self.encoder.name}, not of other features, got "
                f"{num_columns}; give it programs that this encoder has encoded"
            )

    def _is_own(self, examples: Examples) -> NDArray[np.bool_]:
        """Which programs are of its device; without any all count alike."""
        is_own = np.array(examples.device_names)[examples.devices] == self.device
        return is_own if is_own.any() else np.ones(len(examples), bool)

    def _slopes(
        self,
        known: Floats,
        measured: Floats,
        counts: NDArray[np.bool_],
        examples: Examples,
        is_own: NDArray[np.bool_],
    ) -> Floats:
        """For each program that of its device: what a score is worth differs from one to the other."""
        known, measured = (_centred(values, examples.tasks, counts) for values in (known, measured))
        group = np.where(is_own, -1, examples.devices)
        slopes = np.empty(len(known))
        for number in np.unique(group):
            mine = group == number
            slopes[mine] = self._regress(known[mine & counts], measured[mine & counts])
        return slopes

    def _regress(self, known: Floats, measured: Floats) -> float:
        """By how much log throughput changes with the score, near the one that would make both spread alike."""
        if len(known) == 0 or np.ptp(known) == 0 or np.ptp(measured) == 0:
            return 1.0
        spread, wanted, num = known.std(), measured.std(), len(known)
        correlation = float(np.mean(known * measured)) / (spread * wanted)
        shrunk = (num * correlation + self.prior_programs) / (num + self.prior_programs)
        return float(max(shrunk, 0.1) * wanted / spread)

    def _believed(self, local: Examples, weights: Floats) -> float:
        """The share of the local scores that predicts best what is left out when they are learned."""
        if len(local) < 2 * self.num_folds or np.ptp(local.labels) == 0:
            return 0.0
        fold, believed = self._folds(local, float(weights.sum()))
        foreseen = np.empty(len(local))
        for number in range(fold.max() + 1):
            model = self._fitted_local(local.select(np.flatnonzero(fold != number)))
            foreseen[fold == number] = model.score_examples(local.select(np.flatnonzero(fold == number)))
        power = float(weights * foreseen @ foreseen)
        if power == 0:
            return 0.0
        share = float(weights * foreseen @ local.labels) / power
        return float(np.clip(share, 0, 1)) * believed

    def _folds(self, local: Examples, num_programs: float) -> tuple[NDArray[np.int64], float]:
        """Of each program the part of the data that it is left out with, and how far such few data are believed."""
        believed = num_programs / (num_programs + self.prior_programs)
        if self.folds_of == "programs":
            return np.arange(len(local)) % self.num_folds, believed
        if self.folds_of != "tasks":
            raise UsageError(f"folds_of of a residual is programs or tasks, got {self.folds_of!r}")
        tasks, own = np.unique(local.tasks, return_inverse=True)
        believed *= len(tasks) / (len(tasks) + 1)  # another task may have little in common with one alone
        return (own if len(tasks) > 1 else np.arange(len(local))) % self.num_folds, believed

    def _fitted_local(self, local: Examples) -> CostModel:
        model = self._new_local()
        model.fit_examples(local)
        return model

    # --- predicting ---

    def score_examples(self, examples: Examples) -> Floats:
        """As of any model; those of another sketch may have the same number of rows, and other parts of them."""
        self._check_fitted()
        self._check_columns(examples.num_features)
        whole = self.encoder
        known = self.base.score_examples(View.of(self.base.encoder, whole).examples(examples))
        if self.local_ is None:
            return self.slope_ * known
        local = self.local_.score_examples(View.of(self.local_.encoder, whole).examples(examples))
        return self.slope_ * known + self.share_ * local

    def _score(self, values: NDArray[np.float32]) -> Floats:
        self._check_columns(values.shape[2])
        whole = self.encoder
        known = self.base.score(View.of(self.base.encoder, whole).values(values))
        if self.local_ is None:
            return self.slope_ * known
        local = self.local_.score(View.of(self.local_.encoder, whole).values(values))
        return self.slope_ * known + self.share_ * local

    # --- the file ---

    def _state(self) -> dict[str, NDArray[Any]]:
        state: dict[str, NDArray[Any]] = {"shares": np.array([self.slope_, self.share_])}
        state |= {f"{_GLOBAL}{name}": array for name, array in self.base._state().items()}
        if self.local_ is not None:
            state |= {f"{_LOCAL}{name}": array for name, array in self.local_._state().items()}
        return state

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.base._restore(_of(_GLOBAL, arrays))
        self.slope_, self.share_ = map(float, arrays["shares"])
        if not np.isfinite([self.slope_, self.share_]).all():
            raise ValueError(f"scores are multiplied by finite numbers, got {self.slope_} and {self.share_}")
        if not self.base.is_fitted and (self.slope_, self.share_) != (1.0, 0.0):
            raise ValueError(f"the global model {self.global_model} has learned nothing")
        if self.share_:
            self.local_ = self._new_local()
            self.local_._restore(_of(_LOCAL, arrays))
            if not self.local_.is_fitted:
                raise ValueError(f"the local model {self.local_model} has learned nothing")


def _create(name: str, options: Mapping[str, Any]) -> CostModel:
    from tilewright.cost_model.registry import create  # which knows this model, too

    return create(name, **options)


def _of(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _centred(values: Floats, tasks: NDArray[np.int64], counts: NDArray[np.bool_]) -> Floats:
    """Minus the mean over the programs of the task that count; 0 for those of a task without any.

    Only programs of one task are compared.
    """
    _, own = np.unique(tasks, return_inverse=True)
    num = np.bincount(own, counts)
    means = np.bincount(own, np.where(counts, values, 0.0)) / np.maximum(num, 1)
    return np.where(num[own] > 0, values - means[own], 0.0)
