"""The base of cost models that are networks: options, training, prediction without torch, and the file."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from numbers import Real
from reprlib import repr as shown
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.arguments import whole_number
from tilewright.cost_model.base import MAX_BYTES, CostModel
from tilewright.cost_model.dataset import Dataset
from tilewright.cost_model.examples import Examples
from tilewright.cost_model.neural.batches import BatchMaker, row_bucket
from tilewright.cost_model.neural.losses import LOSSES, MSE, RANK
from tilewright.cost_model.neural.trained import TrainedNetwork
from tilewright.errors import UsageError
from tilewright.target import MAX_THREADS

if TYPE_CHECKING:
    from tilewright.cost_model.neural.modules.program_module import ProgramModule
    from tilewright.cost_model.neural.training import Epoch, Objective, TrainingOptions

MAX_SIZE = 65536
"""Of anything in a network: more is a mistake, or a file that wants to take all memory."""
_MOST = 1e6
"""The largest number that an option of training may be: with more, torch has infinities, or errors of its own."""


@dataclass(kw_only=True, eq=False)
class NeuralModel(CostModel):
    """A network that torch trains and tilewright runs.

    A subclass says which network (`_module`) and what it reads (`encoder`). `fit` begins with new weights, `update`
    goes on from those that are there. Both take programs of any number of rows, which are filled up to a few sizes.
    """

    loss: str = RANK
    """"rank" in lists of one subject, "rank-mixed" in lists of shuffled programs, or "mse" of the labels."""
    epochs: int = 50
    decays: bool = False
    """Whether the learning rate falls to 0 over the epochs, along a cosine. Updates keep theirs."""
    batch_size: int = 512
    """Programs in a step; for "rank" the lists that reach this number."""
    learning_rate: float = 7e-4
    weight_decay: float = 1e-6
    clip: float = 0.5
    """The largest norm of a step's gradients."""
    patience: int = 10
    """Epochs without a better loss on held-out subjects after which training ends."""
    validation_share: float = 0.1
    """Of the subjects, those that training does not see: they choose the epoch."""
    update_epochs: int = 4
    update_learning_rate: float = 2e-4
    seed: int = 0
    num_threads: int = 1
    """Of training."""

    goes_on: ClassVar[bool] = True
    reads_named_columns: ClassVar[bool] = False
    """Whether some columns have a meaning to the network, so that it can read those of its encoder alone."""

    network_: TrainedNetwork | None = field(default=None, init=False, repr=False)

    @classmethod
    def checked_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        known = super().checked_options(options)
        cls(**known)._check_options()
        return known

    @abstractmethod
    def _module(self, num_columns: int) -> ProgramModule:
        """A new network in torch; its weights are drawn with torch's seed, which is set."""

    def _padded_rows(self, num_rows: int) -> int:
        """To how many rows a program of so many is filled up."""
        return row_bucket(num_rows)

    def _exported_rows(self, examples: Examples) -> int | None:
        """How many rows the trained network has, if it cannot have any number of them."""
        return None

    def _scale(self, examples: Examples) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Mean and deviation of the columns, by which a network scales them."""
        from tilewright.cost_model.neural.training import column_scale

        return column_scale(examples.values)

    def _objective(self, examples: Examples) -> Objective:
        """What training minimises, where a network does not give one score for each program."""
        from tilewright.cost_model.neural.training import objective_of

        return objective_of(self.loss)

    def _scores(self, outputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Scores of programs, from what the network gives for each."""
        return outputs.astype(np.float64)

    # --- learning ---

    @property
    def is_fitted(self) -> bool:
        return self.network_ is not None

    @property
    def verified_share(self) -> float:
        return 1 / 8

    def fit(
        self,
        dataset: Dataset,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> None:
        """Learn from scratch, or go on where an interrupted call with the same `checkpoint` ended.

        The checkpoint is a file that is written after each epoch, and left there: remove it when the model is saved.
        `on_epoch` is called after each epoch.
        """
        self.fit_examples(dataset.encoded(self.encoder), checkpoint=checkpoint, on_epoch=on_epoch)

    def fit_examples(
        self,
        examples: Examples,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> None:
        self._check_training(examples)
        from tilewright.cost_model.neural.training import seeded

        self._check_memory(examples.num_features)
        with seeded(self.seed):
            module = self._module(examples.num_features)
            network = self._untrained(module, examples.num_features, self._exported_rows(examples))
            module.set_scale(*self._scale(examples))
            self._train(module, examples, self._training(), checkpoint, on_epoch)
            self.network_ = replace(network, weights=_weights(module))

    def update_examples(self, examples: Examples) -> None:
        """A few epochs with all of the data, from the weights that are there."""
        if self.network_ is None:
            self.fit_examples(examples)
            return
        self._go_on(examples, self._training(is_update=True))

    def fine_tune(
        self,
        dataset: Dataset,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> None:
        """Go on from the weights that are there, with small steps; `checkpoint` and `on_epoch` as of `fit`."""
        self._check_fitted()
        self.fine_tune_examples(dataset.encoded(self.encoder), checkpoint=checkpoint, on_epoch=on_epoch)

    def fine_tune_examples(
        self,
        examples: Examples,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> None:
        self._check_fitted()
        options = replace(self._training(), learning_rate=self.update_learning_rate)
        self._go_on(examples, options, checkpoint, on_epoch)

    def _go_on(
        self,
        examples: Examples,
        options: TrainingOptions,
        checkpoint: str | os.PathLike[str] | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> None:
        """Train with other programs, from the weights that are there."""
        assert self.network_ is not None
        self._check_training(examples)
        self._check_columns(examples.num_features)
        from tilewright.cost_model.neural.training import seeded, set_weights

        self._check_memory(examples.num_features)
        # Programs that it learned from before may be longer than those of today.
        num_rows = max(self._exported_rows(examples) or 0, self.network_.num_rows or 0) or None
        with seeded(self.seed):
            module = self._module(examples.num_features)
            self._check_weights(module)
            network = self._untrained(module, examples.num_features, num_rows)
            set_weights(module, self.network_.weights)
            self._train(module, examples, options, checkpoint, on_epoch)
            self.network_ = replace(network, weights=_weights(module))

    def _train(
        self,
        module: ProgramModule,
        examples: Examples,
        options: TrainingOptions,
        checkpoint: str | os.PathLike[str] | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> None:
        from tilewright.cost_model.neural.training import train

        maker = BatchMaker(examples, self.loss, self.batch_size, self._padded_rows)
        train(module, maker, options, self._objective(examples), checkpoint=checkpoint, on_epoch=on_epoch)

    def _training(self, is_update: bool = False) -> TrainingOptions:
        from tilewright.cost_model.neural.training import TrainingOptions

        return TrainingOptions(
            epochs=self.update_epochs if is_update else self.epochs,
            learning_rate=self.update_learning_rate if is_update else self.learning_rate,
            decays=self.decays and not is_update,
            weight_decay=self.weight_decay,
            clip=self.clip,
            patience=self.patience,
            # What is known of a task that is being tuned is too little to hold some back.
            validation_share=0.0 if is_update else self.validation_share,
            seed=self.seed,
            num_threads=self.num_threads,
        )

    def _check_memory(self, num_columns: int) -> None:
        """That the network is not too large for its file; a checkpoint, which has it four times, holds as much more."""
        from tilewright.cost_model.neural.training import num_weights, seeded

        with seeded(self.seed):
            num_bytes = 4 * num_weights(lambda: self._module(num_columns))
        if num_bytes > MAX_BYTES:
            raise UsageError(
                f"the file of a model holds up to {MAX_BYTES >> 20} MB of weights, and the network of the cost model "
                f"{self.name} has {num_bytes >> 20} MB; choose smaller sizes, such as its width"
            )

    def _untrained(self, module: ProgramModule, num_columns: int, num_rows: int | None) -> TrainedNetwork:
        """What training leaves, but for what is learned: all that its file is checked for is known before."""
        from tilewright.cost_model.neural.export import export
        from tilewright.cost_model.neural.training import seeded

        names = self.encoder.columns
        columns = names if len(names) == num_columns else _numbered(num_columns)
        with seeded(self.seed):  # a network that draws numbers learns with the same ones
            network = TrainedNetwork(export(module, num_columns, num_rows), _weights(module), columns, num_rows)
        network.check(
            f"the cost model {self.name} would not come back from its file; choose smaller sizes, such as its width or "
            "num_heads, or plainer operations in a module of your own"
        )
        return network

    def _check_training(self, examples: Examples) -> None:
        """Before any work, that it can be done."""
        self._check_options()
        if len(examples) == 0:
            raise UsageError("a cost model learns from at least one program, got no examples; measure some first")
        if self.loss != MSE and self.batch_size == 1:
            raise UsageError(
                f"the loss {self.loss} compares the programs of a batch, and the cost model {self.name} has a "
                f"batch_size of 1; choose at least 2, or the loss {MSE}"
            )
        names = self.encoder.columns
        if self.reads_named_columns and examples.num_features != len(names):
            raise UsageError(
                f"the cost model {self.name} reads the {len(names)} columns of the encoder {self.encoder.name}, got "
                f"{examples.num_features}; give it programs that this encoder has encoded"
            )
        if find_spec("torch") is None:
            raise UsageError(
                f"the cost model {self.name} is trained with torch, which is not installed; install it with "
                "`pip install tilewright[train]`, or load a model that is trained"
            )

    def _check_options(self) -> None:
        """Before training and after loading; a subclass adds its own, with `check_sizes`."""
        if self.loss not in LOSSES:
            raise UsageError(f"loss of the cost model {self.name} is one of {', '.join(LOSSES)}, got {self.loss!r}")
        for name in ("epochs", "update_epochs", "batch_size", "patience"):
            whole_number(name, getattr(self, name), least=1)
        if whole_number("num_threads", self.num_threads, least=1) > MAX_THREADS:
            raise UsageError(f"num_threads is {self.num_threads}; it must be at most {MAX_THREADS}")
        whole_number("seed", self.seed, least=0)
        for name in ("learning_rate", "update_learning_rate", "clip"):
            check_number(name, getattr(self, name), "above 0", lambda number: number > 0)
        check_number("weight_decay", self.weight_decay, "of at least 0", lambda number: number >= 0)
        check_number("validation_share", self.validation_share, "from 0 to below 1", lambda number: 0 <= number < 1)

    def _check_columns(self, num_columns: int) -> None:
        assert self.network_ is not None
        if num_columns != len(self.network_.columns):
            raise UsageError(
                f"the cost model {self.name} has learned from {len(self.network_.columns)} features, got "
                f"{num_columns}; fit it anew"
            )

    def _check_weights(self, module: ProgramModule) -> None:
        assert self.network_ is not None
        wanted = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
        if wanted != {name: array.shape for name, array in self.network_.weights.items()}:
            raise UsageError(
                f"the cost model {self.name} has weights of another network than its options say; set them as they "
                "were, or fit it anew"
            )

    # --- predicting ---

    def _score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        assert self.network_ is not None
        self._check_columns(values.shape[2])
        return self._scores(self.network_.run(values, self._padded_rows(values.shape[1])))

    # --- the file ---

    def _state(self) -> dict[str, NDArray[Any]]:
        return {} if self.network_ is None else self.network_.to_arrays()

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._check_options()
        if not arrays:
            return
        network = TrainedNetwork.from_arrays(arrays)
        names = self.encoder.columns
        if network.columns != names and network.columns != _numbered(len(network.columns)):
            raise UsageError(
                f"the cost model {self.name} reads {len(names)} columns of the encoder {self.encoder.name}, and the "
                f"file is of {len(network.columns)} others; train the model again with this version"
            )
        self.network_ = network


def check_sizes(model: NeuralModel, *options: str) -> None:
    """That the options are sizes of a network."""
    for name in options:
        if whole_number(name, getattr(model, name), least=1) > MAX_SIZE:
            raise UsageError(f"{name} is {getattr(model, name)}; it must be at most {MAX_SIZE}")


def check_number(name: str, value: Any, rule: str, follows: Callable[[float], bool]) -> None:
    """That an option is a number which follows the rule."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not -_MOST <= value <= _MOST or not follows(value):
        raise UsageError(f"{name} is {shown(value)}; it must be a number {rule}, and at most {_MOST:g}")


def _weights(module: ProgramModule) -> dict[str, NDArray[Any]]:
    """In arrays of their own: torch is not needed from here on."""
    return {name: tensor.detach().numpy().copy() for name, tensor in module.state_dict().items()}


def _numbered(num_columns: int) -> tuple[str, ...]:
    """Names of columns that no encoder gave."""
    return tuple(map(str, range(num_columns)))
