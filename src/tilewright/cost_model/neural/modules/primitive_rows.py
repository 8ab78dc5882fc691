"""Rows of the encoder `primitives` as a network takes them: tokens looked up in a table, the rest scaled."""

from __future__ import annotations

import torch
from torch import nn

from tilewright.cost_model.neural.modules.program_module import ScaledModule, Tensor
from tilewright.features import NUM_TOKENS, PrimitiveEncoder


class PrimitiveModule(ScaledModule):
    """The base of networks that read primitives. `self.num_inputs` is the width of what `inputs` gives for each row."""

    def __init__(self, encoder: PrimitiveEncoder, token_width: int) -> None:
        super().__init__(len(encoder.columns))
        tokens = encoder.token_columns
        self.first_token, self.first_number = tokens.start, tokens.stop
        self.tokens = nn.Embedding(NUM_TOKENS, token_width)
        num_tokens = tokens.stop - tokens.start
        self.num_inputs = len(encoder.columns) - num_tokens + num_tokens * token_width

    def inputs(self, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The rows, and the mask without those that the encoder filled up."""
        scaled = self.scaled(values)
        tokens = self.tokens(values[:, :, self.first_token : self.first_number].long())
        parts = [scaled[:, :, : self.first_token], scaled[:, :, self.first_number :], tokens.flatten(2)]
        return torch.cat(parts, 2), mask * values[:, :, 0]
