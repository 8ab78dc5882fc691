"""Trains and rates one model after the other, and keeps what came of it, so that a run that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_model_cases import LOCAL, POOLED, Case
from tilewright.cli.model_data import check_trainable, train_shown
from tilewright.cli.model_train import over
from tilewright.cost_model import (
    BoostedTrees,
    CostModel,
    Dataset,
    Ensemble,
    FactorTrees,
    Measured,
    create_from_text,
    load,
)
from tilewright.cost_model.neural import NeuralModel
from tilewright.errors import UsageError
from tilewright.records.dataset import Corpus, EvaluationData, Split, evaluate

_POPULATION = 1024
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case."""

    rating: dict[str, Any]
    """As `tilewright model evaluate` has it; empty where there are too few labels to learn from."""
    num_programs: int
    """That were learned from."""
    training_s: float
    """Of a processor, without what encoders take."""
    num_parameters: int
    per_second: float | None
    """Candidates that one processor scores in a second, features included."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What all models share."""

    epochs: int | None
    """Of networks; None for what each has by default."""
    threads: int
    """Of training."""


class Laboratory:
    """The data, and the outcomes so far: a JSON file in `folder`, with the trained models beside it."""

    def __init__(self, corpus: Corpus, settings: Settings, folder: Path) -> None:
        self.corpus, self.settings, self.folder = corpus, settings, folder
        self._data: dict[tuple[tuple[str, ...], str | None], EvaluationData] = {}
        self._last_encoder = ""
        self._fingerprint = fingerprint(corpus)
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def path(self) -> Path:
        return self.folder / "cost_models.json"

    def outcome(self, case: Case) -> Outcome:
        """What the file holds of the case, or what comes of running it now."""
        known = read_outcomes(self.path)
        key = self.key(case)
        if key not in known:
            print(f"table {case.table}: {', '.join(case.row)} {case.column}, seed {case.seed}", file=sys.stderr)
            outcome = self._run(case)
            known = read_outcomes(self.path) | {key: outcome}  # again: another run may have written meanwhile
            write_outcomes(self.path, known)
        return known[key]

    def key(self, case: Case) -> str:
        """Equal for what would give the same."""
        parts = [case.model, asdict(case.split), case.device, asdict(self.settings), self._fingerprint]
        parts += [] if case.way == POOLED else [case.way]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]

    def model(self, case: Case) -> CostModel:
        """The model of a case that was run."""
        made = make(case.model, case.seed, self.settings)
        return made if made.is_fitted else load(self.model_path(case))

    def data(self, case: Case) -> EvaluationData:
        """What the model of a case is rated on."""
        key = case.split.hold_out, case.device
        if key not in self._data:
            devices = None if case.device is None else [case.device]
            self._data[key] = EvaluationData.of(self.corpus, Split(hold_out=case.split.hold_out), devices)
        return self._data[key]

    def _run(self, case: Case) -> Outcome:
        model = self._begun(case)
        if str(model.encoder) != self._last_encoder:
            self.corpus.forget()
            self._last_encoder = str(model.encoder)
        data = self.data(case)
        num_programs, training_s = 0, 0.0
        if not model.is_fitted or case.way != POOLED:
            check_trainable(model, is_begun=case.way != POOLED)
            split = case.split if case.way == POOLED else replace(case.split, others=())
            try:
                dataset = split.training(self.corpus)
            except UsageError as error:
                if case.split.labels == 1:
                    raise
                print(error, file=sys.stderr)
                return Outcome({}, 0, 0.0, 0, None)
            training_s = self._train(model, dataset, self.model_path(case), is_begun=case.way != POOLED)
            num_programs = len(dataset)
        rating = evaluate(model, data, case.model).to_json()
        return Outcome(rating, num_programs, training_s, num_parameters(model), scored_per_second(model, data))

    def _begun(self, case: Case) -> CostModel:
        """A new model; or one that has learned from the other devices, or a residual over that."""
        if case.way == POOLED:
            return make(case.model, case.seed, self.settings)
        self.outcome(case.prior)
        first = self.model(case.prior)
        return over(first, {"seed": case.seed}) if case.way == LOCAL else first

    def _train(self, model: CostModel, dataset: Dataset, path: Path, *, is_begun: bool) -> float:
        checkpoint = path.with_suffix(".checkpoint")
        for group in dataset.groups:
            group.encoded(model.encoder)
        begun_s = time.process_time()
        train_shown(model, dataset, str(checkpoint), is_begun=is_begun)
        training_s = time.process_time() - begun_s
        model.save(path)
        with suppress(FileNotFoundError):
            checkpoint.unlink()
        return training_s

    def model_path(self, case: Case) -> Path:
        """The file of the model of a case that was run."""
        return self.folder / f"{self.key(case)}.npz"


def make(spec: str, seed: int, settings: Settings) -> CostModel:
    """The model of a text such as "tlp" or "boosted-trees:objective=rank,num_trees=200".

    >>> make("random", 3, Settings(None, 1))
    RandomModel(seed=3)
    """
    epochs = {} if settings.epochs is None else {"epochs": settings.epochs}
    return create_from_text(spec, seed=seed, num_threads=settings.threads, **epochs)


def num_parameters(model: CostModel) -> int:
    """Weights of a network; nodes of trees."""
    if isinstance(model, NeuralModel) and model.network_ is not None:
        return sum(array.size for array in model.network_.weights.values())
    if isinstance(model, BoostedTrees | FactorTrees) and model.forest_ is not None:
        return model.forest_.num_nodes
    if isinstance(model, Ensemble):
        return sum(map(num_parameters, model.models_))
    return 0


def scored_per_second(model: CostModel, data: EvaluationData) -> float | None:
    """New programs of the task that has most of them; None where there are logs alone."""
    groups = [group for each in data.lists for group in each.groups if isinstance(group, Measured)]
    if not groups:
        return None
    sketch = max(groups, key=lambda group: len(group.population.sketch.knobs)).population.sketch
    times_s = []
    for repeat in range(_REPEATS):
        population = sketch.sample(np.random.default_rng(repeat), _POPULATION)  # another each time: nothing is cached
        begun_s = time.process_time()
        model.predict(population)
        times_s.append(len(population) / max(time.process_time() - begun_s, 1e-9))
    return max(times_s)


def fingerprint(corpus: Corpus) -> str:
    """Another one when a part of the data is another."""
    parts = [(s.device.name, s.part.path.name, s.part.path.stat().st_size) for s in corpus.sources]
    networks = [(network.title, dict(network.weights)) for network in corpus.networks]
    return hashlib.sha256(json.dumps([parts, networks]).encode()).hexdigest()[:16]


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """Those of a file; none if it is not there."""
    if not path.exists():
        return {}
    try:
        return {key: Outcome(**entry) for key, entry in json.loads(path.read_text()).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} does not hold outcomes of this benchmark ({error}); remove it to begin anew"
        ) from error


def write_outcomes(path: Path, outcomes: Mapping[str, Outcome]) -> None:
    """All of them, in one step."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({key: asdict(outcome) for key, outcome in outcomes.items()}, indent=1))
    partial.replace(path)
