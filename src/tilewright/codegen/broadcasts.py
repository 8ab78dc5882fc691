"""Factors that are one element for all lanes of a vector, and whether the code around reads each of them once."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir import For, Load, Update
from tilewright.te import Binary, Expr, Var
from tilewright.te.index import FromMemory, Linear, Operation, of_atom, variables


@dataclass(slots=True)
class StraightCode:
    """The body of the innermost loop that is not unrolled: over `var`, or none at the top of a function."""

    var: Var | None = None
    unrolled: list[For] = field(default_factory=list)

    def reads_once(self, offset: Linear) -> bool:
        """Whether it moves with the loop, and differs in all iterations of the loops that are unrolled inside."""
        if self.var is None or not offset.terms.get(self.var) or self._is_within(offset):
            return False
        offsets, num_iterations = {0}, 1
        for loop in self.unrolled:
            step = offset.terms.get(loop.var, 0)
            offsets = {other + step * n for other in offsets for n in range(loop.extent)}
            num_iterations *= loop.extent
            if len(offsets) < num_iterations:
                return False
        return True

    def _is_within(self, offset: Linear) -> bool:
        """Whether a variable of this code stands in a quotient or an index from memory, where its step is not known."""
        own = {self.var, *(loop.var for loop in self.unrolled)}
        for atom in offset.terms:
            if isinstance(atom, FromMemory) or (isinstance(atom, Operation) and variables(of_atom(atom)) & own):
                return True
        return False


def factors(loop: For) -> tuple[Expr, ...]:
    """Of a vector loop over a sum of products of floats, what is multiplied; nothing of another loop."""
    update = loop.body
    if not isinstance(update, Update) or update.op != "sum":
        return ()
    product = update.values[0]
    if not isinstance(product, Binary) or product.op != "mul" or product.dtype not in ("float32", "float64"):
        return ()
    return product.a, product.b


def is_uniform(load: Load, loop: For) -> bool:
    """Whether it reads one element for all lanes of the loop."""
    return not any(loop.var in variables(index) for index in load.indices)
