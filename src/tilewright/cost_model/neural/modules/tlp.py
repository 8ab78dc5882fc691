"""TLP: primitives read as a sentence, through a stack of layers, one attention and a score for each primitive."""

from __future__ import annotations

from torch import nn

from tilewright.cost_model.neural.modules.attention import Attention
from tilewright.cost_model.neural.modules.layers import Residual, stack
from tilewright.cost_model.neural.modules.primitive_rows import PrimitiveModule
from tilewright.cost_model.neural.modules.program_module import ProgramModule, Tensor
from tilewright.features import PrimitiveEncoder


class Backbone(nn.Module):  # type: ignore[misc]
    """C -> width/4 -> width/2 -> width -> width for each row, attention added to it, and residual layers."""

    def __init__(self, num_columns: int, width: int, num_heads: int, num_blocks: int) -> None:
        super().__init__()
        self.rows = stack(num_columns, width // 4, width // 2, width, width)
        self.attention = Attention(width, num_heads)
        self.residual = Residual(width, num_blocks)

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        rows = self.rows(values)
        return self.residual(rows + self.attention(rows, mask))


def head(width: int) -> nn.Sequential:
    """width -> width -> width/2 -> width/4 -> 1 for each row."""
    return stack(width, width, width // 2, width // 4, 1, ends_linear=True)


class PublishedTlpModule(ProgramModule):
    """TLP as its authors' code has it: no mask, no places, numbers as they are; the scores of all rows added up."""

    def __init__(self, num_columns: int, width: int, num_heads: int, num_blocks: int) -> None:
        super().__init__()
        self.backbone = Backbone(num_columns, width, num_heads, num_blocks)
        self.head = head(width)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        return self.head(self.backbone(values)).squeeze(2).sum(1)


class TlpModule(PrimitiveModule):
    """The same network on rows that say more, with a mask."""

    def __init__(
        self, encoder: PrimitiveEncoder, token_width: int, width: int, num_heads: int, num_blocks: int
    ) -> None:
        super().__init__(encoder, token_width)
        self.backbone = Backbone(self.num_inputs, width, num_heads, num_blocks)
        self.head = head(width)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        rows, present = self.inputs(values, mask)
        return (self.head(self.backbone(rows, present)).squeeze(2) * present).sum(1)
