"""What an algorithm is: a way to compute a tensor from other stages than its own sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from tilewright.te.expr import Expr
from tilewright.te.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A tensor computed in another way: by `body`, from `stages` before it, of which `ahead` follow from constants."""

    stages: tuple[Tensor, ...]
    ahead: tuple[Tensor, ...]
    body: Expr


@dataclass(frozen=True)
class Algorithm(ABC):
    """A way to compute some tensors. `error_growth` bounds its error: so many times what a sum may be off.

    One whose error does not grow gives the same numbers as the sums.
    """

    name: str
    error_growth: float

    @property
    def least_saving(self) -> float:
        """Where fewer products are saved, what is done before and after them costs more than that."""
        return 1.5

    @property
    def is_exact(self) -> bool:
        return self.error_growth == 1

    @property
    @abstractmethod
    def what_it_computes(self) -> str:
        """What tensors it is for, as an error says it."""

    @abstractmethod
    def saving(self, tensor: Tensor) -> float:
        """How many products of the tensor there are for each one that is left; 0 where it would be of no use."""

    @abstractmethod
    def rewritten(self, tensor: Tensor) -> Rewritten | None:
        """The tensor by this algorithm; None where it does not apply."""
