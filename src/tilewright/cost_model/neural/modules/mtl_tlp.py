"""MTL-TLP: the network of TLP with a head for each device."""

from __future__ import annotations

import torch
from torch import nn

from tilewright.cost_model.neural.modules.primitive_rows import PrimitiveModule
from tilewright.cost_model.neural.modules.program_module import Tensor
from tilewright.cost_model.neural.modules.tlp import Backbone, head
from tilewright.features import PrimitiveEncoder


class MtlTlpModule(PrimitiveModule):
    """What all devices have in common is in the backbone; the score on each is the sum over rows of its own head."""

    def __init__(
        self,
        encoder: PrimitiveEncoder,
        token_width: int,
        width: int,
        num_heads: int,
        num_blocks: int,
        num_devices: int,
    ) -> None:
        super().__init__(encoder, token_width)
        self.backbone = Backbone(self.num_inputs, width, num_heads, num_blocks)
        self.heads = nn.ModuleList(head(width) for _ in range(num_devices))

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """[B, device]"""
        rows, present = self.inputs(values, mask)
        rows = self.backbone(rows, present)
        return torch.stack([(own(rows).squeeze(2) * present).sum(1) for own in self.heads], 1)
