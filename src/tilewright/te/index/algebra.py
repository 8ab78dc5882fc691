"""One walk over index expressions, for every algebra that gives them a meaning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from tilewright.te.dtype import is_int
from tilewright.te.expr import Binary, Cast, Const, Expr, Unary, Var
from tilewright.te.index.interval import OPERATIONS

T = TypeVar("T")


class Algebra(ABC, Generic[T]):
    """Values of index expressions: those of variables and constants, and how operations combine them.

    None stands for a value that is not known.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr, T | None]] = {}

    @abstractmethod
    def variable(self, var: Var) -> T | None:
        """The value of a variable."""

    @abstractmethod
    def constant(self, value: int) -> T:
        """The value of a number."""

    @abstractmethod
    def combine(self, op: str, a: T, b: T) -> T | None:
        """The value of one of OPERATIONS."""

    def held(self, value: T, dtype: str) -> T | None:
        """A value as arithmetic in that type has it; None where it may wrap around."""
        return value if dtype == "int64" else None

    def of(self, e: Expr) -> T | None:
        """The value of an expression; None where it holds something else than index arithmetic."""
        known = self._known.get(id(e))
        if known is None:
            known = self._known[id(e)] = (e, self._of_node(e))  # holding e keeps its id from being reused
        return known[1]

    def _of_node(self, e: Expr) -> T | None:
        if isinstance(e, Var):
            return self.variable(e)
        if isinstance(e, Const):
            return self.constant(e.value) if is_int(e.dtype) else None  # type: ignore[arg-type]
        value = self._of_operation(e)
        return None if value is None else self.held(value, e.dtype)

    def _of_operation(self, e: Expr) -> T | None:
        if isinstance(e, Binary) and e.op in OPERATIONS:
            return self._combined(e.op, self.of(e.a), self.of(e.b))
        if isinstance(e, Unary) and e.op == "neg":
            return self._combined("sub", self.constant(0), self.of(e.x))
        return self.of(e.x) if isinstance(e, Cast) and is_int(e.x.dtype) else None

    def _combined(self, op: str, a: T | None, b: T | None) -> T | None:
        return None if a is None or b is None else self.combine(op, a, b)
