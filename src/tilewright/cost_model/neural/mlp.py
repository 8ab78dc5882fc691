"""TenSet's MLP: statements, each through a small network, summed up and scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tilewright.cost_model.neural.model import NeuralModel, check_sizes
from tilewright.features import Encoder, StatementEncoder

if TYPE_CHECKING:
    from tilewright.cost_model.neural.modules.program_module import ProgramModule


@dataclass(kw_only=True, eq=False)
class Mlp(NeuralModel):
    """The network that TenSet trains on statement features, with columns scaled and lists of one subject."""

    name: ClassVar[str] = "mlp"
    encoder: ClassVar[Encoder] = StatementEncoder()

    width: int = 256
    num_blocks: int = 2

    def _check_options(self) -> None:
        super()._check_options()
        check_sizes(self, "width", "num_blocks")

    def _module(self, num_columns: int) -> ProgramModule:
        from tilewright.cost_model.neural.modules.mlp import MlpModule

        return MlpModule(num_columns, self.width, self.num_blocks)
