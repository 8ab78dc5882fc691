"""Ours: a small network that says what the analytical model gets wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tilewright.cost_model.neural.model import NeuralModel
from tilewright.features import ESTIMATE, Encoder, create_encoder

if TYPE_CHECKING:
    from tilewright.cost_model.neural.modules.program_module import ProgramModule


@dataclass(kw_only=True, eq=False)
class Hierarchical(NeuralModel):
    """The analytical model with a factor for the cycles of each statement, from attention over statements and device.

    Untrained it ranks as the analytical model does. One network is for all devices, since it reads what they are.
    """

    name: ClassVar[str] = "hierarchical"
    reads_named_columns: ClassVar[bool] = True

    width: int = 64
    num_heads: int = 4
    num_blocks: int = 2
    residual_scale: float = 1.0
    """By what the logarithm of the factors is multiplied: 0 leaves the analytical model."""

    @property
    def encoder(self) -> Encoder:
        return create_encoder("statements+hardware")

    def _module(self, num_columns: int) -> ProgramModule:
        from tilewright.cost_model.neural.modules.hierarchical import HierarchicalModule

        estimate = self.encoder.columns.index(f"statements.{ESTIMATE}")
        return HierarchicalModule(
            num_columns, estimate, self.width, self.num_heads, self.num_blocks, self.residual_scale
        )
