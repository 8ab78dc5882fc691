"""TLP: schedule primitives read as a language, as published and with what the published form leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tilewright.cost_model.neural.losses import RANK_MIXED
from tilewright.cost_model.neural.model import NeuralModel, check_sizes
from tilewright.errors import UsageError
from tilewright.features import Encoder, PrimitiveEncoder, PublishedPrimitiveEncoder

if TYPE_CHECKING:
    from tilewright.cost_model.neural.modules.program_module import ProgramModule


@dataclass(kw_only=True, eq=False)
class TlpOptions(NeuralModel):
    """What both forms have."""

    width: int = 256
    num_heads: int = 8
    num_blocks: int = 2
    """Residual layers behind the attention."""

    def _check_options(self) -> None:
        super()._check_options()
        check_sizes(self, "width", "num_heads", "num_blocks")
        if self.width % 4 or self.width % self.num_heads:
            raise UsageError(
                f"the width of the cost model {self.name} is a multiple of 4 and of num_heads, got {self.width} and "
                f"{self.num_heads} heads; choose other numbers"
            )


@dataclass(kw_only=True, eq=False)
class PublishedTlp(TlpOptions):
    """TLP as published: sequences cut to 25, no mask, no places, numbers as they are, shuffled batches as lists.

    Sizes are those for CPUs; for GPUs it has a length of 40 and 9 parameters.
    """

    name: ClassVar[str] = "tlp-published"

    loss: str = RANK_MIXED
    batch_size: int = 1024
    length: int = 25
    num_parameters: int = 11

    @property
    def encoder(self) -> Encoder:
        return PublishedPrimitiveEncoder(length=self.length, num_parameters=self.num_parameters)

    def _check_options(self) -> None:
        super()._check_options()
        check_sizes(self, "length", "num_parameters")

    def _padded_rows(self, num_rows: int) -> int:
        return num_rows  # what is filled up counts here

    def _module(self, num_columns: int) -> ProgramModule:
        from tilewright.cost_model.neural.modules.tlp import PublishedTlpModule

        return PublishedTlpModule(num_columns, self.width, self.num_heads, self.num_blocks)


@dataclass(kw_only=True, eq=False)
class Tlp(TlpOptions):
    """TLP on whole sequences with a mask, places, tokens of names and scaled numbers, ranked within one subject."""

    name: ClassVar[str] = "tlp"
    reads_named_columns: ClassVar[bool] = True

    length: int | None = None
    """At which sequences are cut; None for whole ones."""
    token_width: int = 8

    @property
    def encoder(self) -> PrimitiveEncoder:
        return PrimitiveEncoder(length=self.length)

    def _check_options(self) -> None:
        super()._check_options()
        check_sizes(self, "token_width", *(() if self.length is None else ("length",)))

    def _module(self, num_columns: int) -> ProgramModule:
        from tilewright.cost_model.neural.modules.tlp import TlpModule

        return TlpModule(self.encoder, self.token_width, self.width, self.num_heads, self.num_blocks)
