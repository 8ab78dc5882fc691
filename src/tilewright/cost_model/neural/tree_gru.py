"""TreeGRU: the loop tree of a program, read from the statements up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.examples import Examples
from tilewright.cost_model.neural.model import NeuralModel
from tilewright.errors import UsageError
from tilewright.features import Encoder, LoopTreeEncoder

if TYPE_CHECKING:
    from tilewright.cost_model.neural.modules.program_module import ProgramModule


@dataclass(kw_only=True, eq=False)
class TreeGru(NeuralModel):
    """The recurrent network over loop trees that AutoTVM's authors describe, with lists of one subject.

    Theirs looks up an embedding of a loop's name; here a node is its numbers alone, so that it is the same network for
    any operator.
    """

    name: ClassVar[str] = "tree-gru"
    encoder: ClassVar[Encoder] = LoopTreeEncoder()
    reads_named_columns: ClassVar[bool] = True

    width: int = 128
    num_slots: int = 8
    max_nodes: int = 40
    """A program with more loops and statements than that is refused: the network has a step for each."""

    def _padded_rows(self, num_rows: int) -> int:
        return self.max_nodes

    def _exported_rows(self, examples: Examples) -> int | None:
        return self.max_nodes

    def _module(self, num_columns: int) -> ProgramModule:
        from tilewright.cost_model.neural.modules.tree_gru import TreeGruModule

        return TreeGruModule(num_columns, self.encoder.columns.index("parent"), self.width, self.num_slots)

    def _check_examples(self, examples: Examples) -> None:
        super()._check_examples(examples)
        self._check_nodes(int(examples.num_statements.max()))

    def _score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        self._check_nodes(values.shape[1])
        return super()._score(values)

    def _check_nodes(self, num_nodes: int) -> None:
        if num_nodes > self.max_nodes:
            raise UsageError(
                f"the cost model {self.name} reads trees of at most max_nodes={self.max_nodes} nodes, got one of "
                f"{num_nodes}; fit it anew with max_nodes={num_nodes}"
            )
