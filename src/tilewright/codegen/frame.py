"""What is known while one function is written: its builder, the loop variables, their ranges and the vector lanes."""

from __future__ import annotations

from typing import TypeAlias

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.ir import expressions, forms
from tilewright.target import Target
from tilewright.te import Var
from tilewright.te.index import FromMemory, Interval, Linear, Operation, atom_bounds, bounds, of_atom

Binding: TypeAlias = "int | Value"


class Frame:
    """The state of one function. `lane_var` is the loop variable that runs across the lanes of vectors."""

    def __init__(self, builder: FunctionBuilder, target: Target) -> None:
        self.builder = builder
        self.target = target
        self.bindings: dict[Var, Binding] = {}
        self.ranges: dict[Var, Interval] = {}
        self.lane_var: Var | None = None
        self.lanes = 1

    def bind(self, var: Var, value: Binding, low: int, high: int) -> None:
        self.bindings[var] = value
        self.ranges[var] = Interval(low, high)

    # --- linear forms -----------------------------------------------------------------------------------------------

    def split_lane(self, form: Linear) -> tuple[Linear, int] | None:
        """The form and its step from lane to lane; None where it does not step evenly.

        The lane variable is bound to the first lane, so that the form itself is the value there.
        """
        var = self.lane_var
        if var is None:
            return form, 0
        if not form.has_only_variables and any(not isinstance(a, Var) and self._varies(a) for a in form.terms):
            return None
        return form, form.terms.get(var, 0)

    def _varies(self, atom: Operation | FromMemory) -> bool:
        if not _depends(of_atom(atom), self.lane_var):
            return False
        low, high = atom_bounds(atom, self.ranges)
        return low < high

    def decide(self, op: str, form: Linear) -> bool | None:
        """Whether `form >= 0` (ge), `== 0` (eq) or `!= 0` (ne), where the ranges tell."""
        low, high = bounds(form, self.ranges)
        if op == "ge":
            return True if low >= 0 else False if high < 0 else None
        if low == high == 0:
            return op == "eq"
        return op == "ne" if low > 0 or high < 0 else None


def _depends(form: Linear, var: Var | None) -> bool:
    for atom in form.terms:
        if atom is var:
            return True
        if isinstance(atom, Operation) and (_depends(atom.a, var) or _depends(atom.b, var)):
            return True
        if isinstance(atom, FromMemory) and any(_depends(f, var) for e in expressions(atom.value) for f in forms(e)):
            return True
    return False
