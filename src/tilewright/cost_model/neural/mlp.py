"""The MLP over statements: TenSet's as published, and on the features and lists of this project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.examples import Examples
from tilewright.cost_model.neural.losses import RANK_MIXED
from tilewright.cost_model.neural.model import NeuralModel, check_sizes
from tilewright.features import Encoder, PublishedStatementEncoder, StatementEncoder

if TYPE_CHECKING:
    from tilewright.cost_model.neural.modules.program_module import ProgramModule


@dataclass(kw_only=True, eq=False)
class Mlp(NeuralModel):
    """TenSet's network on more than TenSet has: it reads what the roofline makes of a statement on its device.

    Columns are scaled to mean 0 and deviation 1, and programs are ranked within their subject.
    """

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


@dataclass(kw_only=True, eq=False)
class PublishedMlp(Mlp):
    """TenSet's MLP as published: Ansor's features over their largest values, shuffled batches as lists.

    Its ten columns of operators, which TVM names, are missing: all programs of a task have the same.
    """

    name: ClassVar[str] = "mlp-published"
    encoder: ClassVar[Encoder] = PublishedStatementEncoder()

    loss: str = RANK_MIXED

    def _scale(self, examples: Examples) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        largest = examples.values.max(axis=0)
        return np.zeros_like(largest), largest
