"""ATFormer: a program on its levels, with attention inside statements and between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tilewright.cost_model.neural.model import NeuralModel, check_sizes
from tilewright.errors import UsageError
from tilewright.features import Encoder, create_encoder

if TYPE_CHECKING:
    from tilewright.cost_model.neural.modules.program_module import ProgramModule


@dataclass(kw_only=True, eq=False)
class Atformer(NeuralModel):
    """Our reconstruction of ATFormer: what is public of it is two levels of attention over hierarchical features.

    Its sizes and its exact features are not known; those here are ours.
    """

    name: ClassVar[str] = "atformer"
    reads_named_columns: ClassVar[bool] = True

    reads_hardware: bool = False
    """Whether the device is a row beside the program and its statements."""
    width: int = 64
    num_heads: int = 4

    def _check_options(self) -> None:
        super()._check_options()
        check_sizes(self, "width", "num_heads")
        if self.width % self.num_heads:
            raise UsageError(
                f"the width of the cost model {self.name} is a multiple of num_heads, got {self.width} and "
                f"{self.num_heads} heads; choose another width"
            )

    @property
    def encoder(self) -> Encoder:
        return create_encoder("hierarchy+hardware" if self.reads_hardware else "hierarchy")

    def _module(self, num_columns: int) -> ProgramModule:
        from tilewright.cost_model.neural.modules.atformer import AtformerModule

        columns = [column.removeprefix("hierarchy.") for column in self.encoder.columns]
        parent, *fine = (columns.index(name) for name in ("parent", "is_loop", "is_buffer"))
        return AtformerModule(num_columns, parent, fine, self.width, self.num_heads)
