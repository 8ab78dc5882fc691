"""TreeGRU: a gated recurrent unit over the loop tree, from the statements up to the program.

A node's state comes from its own numbers and the sum of its children's states. The states of the nodes that have
children are scattered into slots, and decoded from there.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tilewright.cost_model.neural.modules.program_module import ScaledModule, Tensor
from tilewright.cost_model.neural.modules.structure import parent_links


class TreeGruModule(ScaledModule):
    """Rows are nodes, parents before children, so that a step a row, from the last to the first, meets all children.

    (A step for each level of the tree has to compute as many nodes as the widest level has: five times as many.)
    """

    def __init__(self, num_columns: int, parent: int, width: int, num_slots: int) -> None:
        super().__init__(num_columns)
        self.parent, self.width = parent, width
        self.embedding = nn.Linear(num_columns, width)
        self.gates = nn.Linear(width, 3 * width)
        self.child_gates = nn.Linear(width, 3 * width, bias=False)
        self.slot_scores = nn.Linear(width, num_slots, bias=False)
        self.decoder = nn.Linear(num_slots * width, width)
        self.score = nn.Linear(width, 1)
        for layer in (self.embedding, self.gates, self.child_gates, self.slot_scores, self.decoder, self.score):
            nn.init.xavier_uniform_(layer.weight)

    def set_scale(self, mean: NDArray[np.float32], deviation: NDArray[np.float32]) -> None:
        super().set_scale(mean, deviation)
        self.factor[self.parent] = 0  # the number of a row says nothing of the program

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        links = parent_links(values[:, :, self.parent], mask)
        nodes = torch.relu(self.embedding(self.scaled(values)))
        states = self._states(self.gates(nodes), links)
        is_inner = (links.sum(1) > 0).to(values.dtype).unsqueeze(2)
        shares = torch.softmax(self.slot_scores(states), 2) * is_inner
        context = torch.matmul(shares.transpose(1, 2), states).flatten(1)
        return self.score(torch.sigmoid(self.decoder(context))).squeeze(1)

    def _states(self, inputs: Tensor, links: Tensor) -> Tensor:
        """The state of each node, [B, R, width]; what follows the last node has some, too, but no parent."""
        # Rows come first here: one row of all programs is then a piece of memory.
        inputs = inputs.transpose(0, 1)
        links = links.permute(1, 2, 0).unsqueeze(3)
        sums = torch.zeros_like(inputs[:, :, : self.width])
        states: list[Tensor] = []
        for row in reversed(range(inputs.shape[0])):
            states.insert(0, self._state(inputs[row], sums[row]))
            sums = sums + links[row] * states[0]
        return torch.stack(states, 1)

    def _state(self, inputs: Tensor, sums: Tensor) -> Tensor:
        reset, keep, new = inputs.split(self.width, 1)
        child_reset, child_keep, child_new = self.child_gates(sums).split(self.width, 1)
        candidate = torch.tanh(new + torch.sigmoid(reset + child_reset) * child_new)
        return candidate + torch.sigmoid(keep + child_keep) * (sums - candidate)
