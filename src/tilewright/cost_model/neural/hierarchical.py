"""Ours: small networks that say what the analytical model gets wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.examples import Examples
from tilewright.cost_model.neural.losses import MSE
from tilewright.cost_model.neural.model import NeuralModel, check_number, check_sizes
from tilewright.cost_model.views import View
from tilewright.errors import UsageError
from tilewright.features import (
    ESTIMATE,
    Encoder,
    HardwareEncoder,
    JoinedEncoder,
    ProgramEncoder,
    StatementEncoder,
)

if TYPE_CHECKING:
    from tilewright.cost_model.neural.batches import Batch
    from tilewright.cost_model.neural.modules.program_module import ProgramModule, Tensor
    from tilewright.cost_model.neural.training import Objective

_PARTS = (StatementEncoder(), ProgramEncoder(), HardwareEncoder())


@dataclass(kw_only=True, eq=False)
class Hierarchical(NeuralModel):
    """The analytical model with a factor for the cycles of each statement, from attention over the levels of a program.

    It reads statements, the program as a whole and the device, so that one network is for all devices. The score is the
    mean over a few networks; before they have learned anything it is that of the analytical model. Scores are
    logarithms of throughput.
    """

    name: ClassVar[str] = "hierarchical"
    encoder: ClassVar[Encoder] = JoinedEncoder(_PARTS)
    reads_named_columns: ClassVar[bool] = True

    epochs: int = 15
    decays: bool = True
    learning_rate: float = 2e-3
    weight_decay: float = 1e-5
    clip: float = 1.0
    validation_share: float = 0.0
    width: int = 32
    num_heads: int = 4
    num_blocks: int = 1
    num_members: int = 4
    """How many networks the score is the mean of."""
    residual_scale: float = 1.0
    """By what the logarithm of the factors is multiplied: 0 leaves the analytical model."""
    sharpness: float = 8.0
    """By what scores are multiplied where they are ranked in training: how sure a difference of 1 / sharpness is."""

    def _check_options(self) -> None:
        super()._check_options()
        check_sizes(self, "width", "num_heads", "num_blocks", "num_members")
        check_number("residual_scale", self.residual_scale, "of at least 0", lambda number: number >= 0)
        check_number("sharpness", self.sharpness, "above 0", lambda number: number > 0)
        if self.width % self.num_heads:
            raise UsageError(
                f"the width of the cost model {self.name} is a multiple of num_heads, got {self.width} and "
                f"{self.num_heads} heads; choose another width"
            )
        if self.loss == MSE:
            raise UsageError(f"the cost model {self.name} learns to rank, got the loss {MSE!r}; choose another")

    def _module(self, num_columns: int) -> ProgramModule:
        from tilewright.cost_model.neural.modules.hierarchical import HierarchicalModule

        return HierarchicalModule(
            num_columns,
            self.encoder.columns.index(f"{StatementEncoder.name}.{ESTIMATE}"),
            self.width,
            self.num_heads,
            self.num_blocks,
            self.num_members,
            self.residual_scale,
        )

    def _scale(self, examples: Examples) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Of each part by its own rows: what is the same in all of them, as a device, then counts for nothing."""
        from tilewright.cost_model.neural.training import column_scale

        scales = [column_scale(View.of(part, self.encoder).examples(examples).values) for part in _PARTS]
        mean, deviation = (np.concatenate(parts) for parts in zip(*scales, strict=True))
        return mean, deviation

    def _objective(self, examples: Examples) -> Objective:
        from tilewright.cost_model.neural.training import objective_of

        objective = objective_of(self.loss)

        def of_all_members(outputs: Tensor, batch: Batch) -> Tensor:
            """Each learns by itself."""
            return sum(objective(outputs[:, member] * self.sharpness, batch) for member in range(self.num_members))

        return of_all_members

    def _scores(self, outputs: NDArray[np.float32]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = outputs.mean(axis=1, dtype=np.float64)
        return scores
