"""The training of a network: Adam, clipped gradients, early stopping on held-out subjects, a checkpoint each epoch.

The result depends on the data, the options and the seed alone: an epoch's order is drawn from the seed and the number
of the epoch. So a training that goes on from its checkpoint ends where it would have ended without an interruption.
"""

from __future__ import annotations

import copy
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from tilewright.cost_model.examples import Examples
from tilewright.cost_model.neural.batches import Batch, BatchMaker
from tilewright.cost_model.neural.checkpoint import Checkpoint, fingerprint, read_checkpoint, write_checkpoint
from tilewright.cost_model.neural.losses import MSE, lambda_rank, mean_squared_error
from tilewright.cost_model.neural.modules.program_module import ProgramModule, Tensor
from tilewright.errors import UsageError

Objective: TypeAlias = Callable[[Tensor, Batch], Tensor]
"""The loss of a batch, from what the network gives for its programs."""

_ROWS_AT_ONCE = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """How a network is trained; `NeuralModel` says what each is for."""

    epochs: int
    learning_rate: float
    decays: bool
    weight_decay: float
    clip: float
    patience: int
    validation_share: float
    seed: int
    num_threads: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """What is told after each epoch. Without held-out subjects there is no validation loss."""

    number: int
    num_epochs: int
    train_loss: float
    validation_loss: float | None
    programs_per_s: float
    time_left_s: float
    """If all epochs are needed."""


def train(
    module: ProgramModule,
    maker: BatchMaker,
    options: TrainingOptions,
    objective: Objective,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> None:
    """Train the module in place; it ends with the weights of the epoch that did best on held-out subjects.

    With a `checkpoint`, a file is written after each epoch, and one that is there is gone on from.
    """
    with _threads(options.num_threads):
        training = _Training(module, maker, options, objective)
        if checkpoint is not None:
            training.go_on_from(checkpoint)
        training.run(checkpoint, on_epoch)


def objective_of(loss: str) -> Objective:
    """The loss of that name, of a network that gives one score for each program."""
    if loss == MSE:
        return lambda scores, batch: mean_squared_error(scores, batch.labels)
    return lambda scores, batch: lambda_rank(scores, batch.lists)


def held_out(examples: Examples, share: float, seed: int) -> NDArray[np.bool_]:
    """Which programs are for validation: those of about so large a share of the subjects, drawn by the seed.

    Of a subject whose labels are all equal no order can be wrong: none such is chosen, nor the last of the others.
    """
    subjects, own = np.unique(examples.tasks, return_inverse=True)
    least, most = np.full(len(subjects), np.inf), np.full(len(subjects), -np.inf)
    np.minimum.at(least, own, examples.labels)
    np.maximum.at(most, own, examples.labels)
    tells = most > least
    num_held_out = min(int(share * len(subjects) + 0.5), max(np.count_nonzero(tells) - 1, 0))
    drawn = np.random.default_rng(seed).permutation(subjects)
    chosen = drawn[np.isin(drawn, subjects[tells])][:num_held_out]
    return np.isin(examples.tasks, chosen)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """What torch draws follows from the seed, and networks are made and trained whatever else the caller has set.

    Afterwards all is as it was: as if nothing had been drawn, and without gradients, for instance, if there were none.
    """
    device, dtype = torch.get_default_device(), torch.get_default_dtype()
    on_cpu = nullcontext() if device.type == "cpu" else torch.device("cpu")  # which takes time at every operation
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), torch.autocast("cpu", enabled=False), on_cpu, torch.random.fork_rng([]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_default_dtype(dtype)


def num_weights(make: Callable[[], ProgramModule]) -> int:
    """How many numbers a network has, found without the memory for them; 0 of one that looks at its own."""
    try:
        with torch.device("meta"):
            weights = make().state_dict().values()
    except (RuntimeError, TypeError):
        return 0
    return int(sum(tensor.numel() for tensor in weights))


def set_weights(module: ProgramModule, weights: Mapping[str, NDArray[Any]]) -> None:
    """Give the network copies of the weights, which are all of its own."""
    module.load_state_dict(_tensors(weights))


def column_scale(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The mean and the deviation of each column, over all rows of all programs."""
    mean = values.mean(axis=0, dtype=np.float64)
    squares = np.zeros_like(mean)
    for start in range(0, len(values), _ROWS_AT_ONCE):
        squares += ((values[start : start + _ROWS_AT_ONCE] - mean) ** 2).sum(axis=0)
    return mean.astype(np.float32), np.sqrt(squares / len(values)).astype(np.float32)


@contextmanager
def _threads(num_threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(eq=False)
class _Training:
    module: ProgramModule
    maker: BatchMaker
    options: TrainingOptions
    objective: Objective
    epoch: int = field(default=0, init=False)
    best_epoch: int = field(default=0, init=False)
    best_loss: float = field(default=math.inf, init=False)
    started: str = field(default="", init=False)
    """What the training began with, if it has a checkpoint."""

    def __post_init__(self) -> None:
        is_held_out = held_out(self.maker.examples, self.options.validation_share, self.options.seed)
        self.programs = np.flatnonzero(~is_held_out)
        # Drawn once: the losses of two epochs are compared.
        rng = np.random.default_rng(self.options.seed)
        self.validation = self.maker.batches(np.flatnonzero(is_held_out), rng) if is_held_out.any() else []
        self.adam = torch.optim.Adam(
            self.module.parameters(), lr=self.options.learning_rate, weight_decay=self.options.weight_decay
        )
        self.best = copy.deepcopy(self.module.state_dict())

    def run(self, checkpoint: str | os.PathLike[str] | None, on_epoch: Callable[[Epoch], None] | None) -> None:
        first, begun_s = self.epoch, time.perf_counter()
        while not self._is_over:
            train_loss = self._train_epoch()
            validation_loss = self._validate()
            self._keep_best(validation_loss)
            if checkpoint is not None:
                write_checkpoint(checkpoint, self._checkpoint())
            if on_epoch is not None:
                epoch_s = (time.perf_counter() - begun_s) / (self.epoch - first)
                left_s = (self.options.epochs - self.epoch) * epoch_s
                speed = len(self.programs) / epoch_s
                on_epoch(Epoch(self.epoch, self.options.epochs, train_loss, validation_loss, speed, left_s))
        self.module.load_state_dict(self.best)
        self._check_scores()

    @property
    def _is_over(self) -> bool:
        is_stuck = bool(self.validation) and self.epoch - self.best_epoch >= self.options.patience
        return self.epoch >= self.options.epochs or is_stuck

    def _train_epoch(self) -> float:
        self.module.train()
        total = 0.0
        rng = np.random.default_rng((self.options.seed, self.epoch))
        batches = self.maker.batches(self.programs, rng)
        for number, batch in enumerate(batches):
            self._set_learning_rate(self.epoch + number / len(batches))
            self.adam.zero_grad()
            loss = self.objective(self._outputs(batch), batch)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.options.clip)
            if torch.isfinite(norm):
                self.adam.step()
            total += float(loss.detach()) * len(batch)
        self.epoch += 1
        return total / len(self.programs)

    def _set_learning_rate(self, epochs: float) -> None:
        """That after so many epochs and parts of one."""
        share = (1 + math.cos(math.pi * epochs / self.options.epochs)) / 2 if self.options.decays else 1.0
        for group in self.adam.param_groups:
            group["lr"] = self.options.learning_rate * share

    def _validate(self) -> float | None:
        if not self.validation:
            return None
        self.module.eval()
        with torch.no_grad():
            losses = [float(self.objective(self._outputs(batch), batch)) for batch in self.validation]
        return float(np.average(losses, weights=[len(batch) for batch in self.validation]))

    def _outputs(self, batch: Batch) -> Tensor:
        """What the network gives for the programs of the batch, in their order."""
        places, outputs = [], []
        for own, values, mask in batch.parts():
            places.append(own)
            outputs.append(self.module(torch.from_numpy(values), torch.from_numpy(mask)))
        return torch.cat(outputs)[torch.from_numpy(np.argsort(np.concatenate(places)))]

    def _check_scores(self) -> None:
        """What has learned with steps that are too large gives no numbers, and its file would be refused."""
        some = self.maker.batches(self.programs[: self.maker.batch_size], np.random.default_rng(0))[0]
        self.module.eval()
        with torch.no_grad():
            outputs = self._outputs(some)
        if not torch.isfinite(outputs).all():
            raise UsageError(
                "the scores of a network are finite numbers, and after its training they are not; choose a smaller "
                f"learning_rate than {self.options.learning_rate:g}"
            )

    def _keep_best(self, validation_loss: float | None) -> None:
        """Without held-out subjects, or while their loss is no number, the last epoch is the best."""
        if validation_loss is not None and math.isfinite(self.best_loss) and not validation_loss < self.best_loss:
            return
        self.best_epoch = self.epoch
        self.best_loss = math.inf if validation_loss is None else validation_loss
        self.best = copy.deepcopy(self.module.state_dict())

    # --- going on after an interruption ---

    def go_on_from(self, path: str | os.PathLike[str]) -> None:
        """Take the state of the file, if it is there; it must be of the same training."""
        options = asdict(self.options)
        del options["num_threads"]  # which another machine may have more of
        network = _arrays(self.module.state_dict())
        self.started = fingerprint(self.maker, options, network)
        if not os.path.exists(path):
            return
        found = read_checkpoint(path, self.started, network)
        self.epoch, self.best_epoch, self.best_loss = found.epoch, found.best_epoch, found.best_loss
        set_weights(self.module, found.weights)
        self.best = _tensors(found.best)
        names = [name for name, _ in self.module.named_parameters()]
        state = {
            number: {
                "step": torch.tensor(float(found.num_steps)),
                "exp_avg": torch.from_numpy(found.first_moments[name]),
                "exp_avg_sq": torch.from_numpy(found.second_moments[name]),
            }
            for number, name in enumerate(names)
            if name in found.first_moments
        }
        self.adam.load_state_dict({"state": state, "param_groups": self.adam.state_dict()["param_groups"]})

    def _checkpoint(self) -> Checkpoint:
        state = self.adam.state
        moved = {name: state[weight] for name, weight in self.module.named_parameters() if weight in state}
        return Checkpoint(
            fingerprint=self.started,
            epoch=self.epoch,
            best_epoch=self.best_epoch,
            best_loss=self.best_loss,
            num_steps=max((int(own["step"]) for own in moved.values()), default=0),
            weights=_arrays(self.module.state_dict()),
            best=_arrays(self.best),
            first_moments={name: own["exp_avg"].numpy() for name, own in moved.items()},
            second_moments={name: own["exp_avg_sq"].numpy() for name, own in moved.items()},
        )


def _arrays(state: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    return {name: tensor.detach().numpy().copy() for name, tensor in state.items()}


def _tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
