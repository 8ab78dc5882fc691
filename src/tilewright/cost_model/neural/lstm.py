"""An LSTM over schedule primitives, which TLP is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tilewright.cost_model.examples import Examples
from tilewright.cost_model.neural.batches import row_bucket
from tilewright.cost_model.neural.model import NeuralModel, check_sizes
from tilewright.cost_model.neural.trained import MAX_ROWS
from tilewright.errors import UsageError
from tilewright.features import PrimitiveEncoder

if TYPE_CHECKING:
    from tilewright.cost_model.neural.modules.program_module import ProgramModule


@dataclass(kw_only=True, eq=False)
class Lstm(NeuralModel):
    """Reads what `Tlp` does, one primitive after the other.

    The trained network is of as many rows as the longest program that it learned from; of a longer one it reads the
    beginning.
    """

    name: ClassVar[str] = "lstm"
    reads_named_columns: ClassVar[bool] = True

    width: int = 128
    length: int | None = None
    """At which sequences are cut; None for whole ones."""
    token_width: int = 8

    @property
    def encoder(self) -> PrimitiveEncoder:
        return PrimitiveEncoder(length=self.length)

    def _check_options(self) -> None:
        super()._check_options()
        check_sizes(self, "width", "token_width", *(() if self.length is None else ("length",)))

    def _check_training(self, examples: Examples) -> None:
        super()._check_training(examples)
        if (num_rows := self._exported_rows(examples)) > MAX_ROWS:
            raise UsageError(
                f"the cost model {self.name} reads programs of up to {MAX_ROWS} primitives one after the other, and "
                f"the longest has {num_rows} with what it is filled up by; set length, at which they are cut"
            )

    def _exported_rows(self, examples: Examples) -> int:
        return row_bucket(int(examples.num_statements.max()))

    def _module(self, num_columns: int) -> ProgramModule:
        from tilewright.cost_model.neural.modules.lstm import LstmModule

        return LstmModule(self.encoder, self.token_width, self.width)
