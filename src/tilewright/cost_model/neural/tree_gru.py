"""TreeGRU: the loop tree of a program, read from the statements up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tilewright.cost_model.examples import Examples
from tilewright.cost_model.neural.batches import row_bucket
from tilewright.cost_model.neural.model import NeuralModel, check_sizes
from tilewright.cost_model.neural.trained import MAX_ROWS
from tilewright.features import Encoder, LoopTreeEncoder

if TYPE_CHECKING:
    from tilewright.cost_model.neural.modules.program_module import ProgramModule


@dataclass(kw_only=True, eq=False)
class TreeGru(NeuralModel):
    """The recurrent network over loop trees that AutoTVM's authors describe, with lists of one subject.

    Theirs looks up an embedding of a loop's name; here a node is its numbers alone, so that it is the same network for
    any operator. The trained network has as many steps as the largest tree that it learned from has nodes, up to
    1,024; of a larger one it reads the first nodes, which are a tree.
    """

    name: ClassVar[str] = "tree-gru"
    encoder: ClassVar[Encoder] = LoopTreeEncoder()
    reads_named_columns: ClassVar[bool] = True

    width: int = 128
    num_slots: int = 8

    def _check_options(self) -> None:
        super()._check_options()
        check_sizes(self, "width", "num_slots")

    def _exported_rows(self, examples: Examples) -> int:
        return min(row_bucket(int(examples.num_statements.max())), MAX_ROWS)

    def _module(self, num_columns: int) -> ProgramModule:
        from tilewright.cost_model.neural.modules.tree_gru import TreeGruModule

        return TreeGruModule(num_columns, self.encoder.columns.index("parent"), self.width, self.num_slots)
