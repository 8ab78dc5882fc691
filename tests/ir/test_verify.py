"""The verifier: what it accepts, and what it says of a nest that breaks a rule."""

from __future__ import annotations

import pytest

from tilewright import ir, te
from tilewright.errors import LoweringError
from tilewright.ir import (
    INPUT,
    LOCAL,
    OUTPUT,
    Block,
    Buffer,
    For,
    Index,
    Load,
    LoopNest,
    Stmt,
    Store,
    Update,
    Where,
    verify,
)
from tilewright.schedule import PARALLEL, SERIAL, VECTORIZE
from tilewright.te import Expr, Var
from tilewright.te.index import FromMemory, Linear

A = Buffer("A", (8,), "float32", INPUT)
B = Buffer("B", (8,), "int64", INPUT)
C = Buffer("C", (8,), "float32", OUTPUT)
T = Buffer("T", (8,), "float32", LOCAL)
i, j = Var("int64", "i"), Var("int64", "j")
I, J = Linear({i: 1}, 0), Linear({j: 1}, 0)  # noqa: E741  # the forms of i and j
ONE = te.constant(1.0, "float32")


def _load(index: Linear, buffer: Buffer = A) -> Load:
    return Load(buffer.dtype, buffer, (index,))


def _store(value: Expr = ONE, index: Linear = I, buffer: Buffer = C) -> Store:
    return Store(buffer, (index,), value)


def _for(body: Stmt, kind: str = SERIAL, var: Var = i, begin: int = 0, extent: int = 8) -> For:
    return For(var, begin, extent, kind, body)


def _guarded(read: Load, form: Linear) -> Expr:
    return te.Select("float32", ir.Test("bool", "ge", form), read, ONE)


GOOD: dict[str, Stmt] = {
    "a loop": _for(_store(_load(I))),
    "a guarded read beyond the end": _for(_store(_guarded(_load(I + 1), I * -1 + 6))),
    "an index from memory": _for(_store(_load(Linear({FromMemory(_load(I, B)): 1}, 0)))),
    "a local buffer within its block": Block((T,), (_for(_store(buffer=T)), _for(_store(_load(I, T))))),
    "cases that cover the loop": _for(Where(i, ((0, 3, _store()), (3, 8, _store()))), PARALLEL),
    "one loop after another": Block((), (_for(_store(), extent=3), _for(_store(), begin=3, extent=5))),
    "an index as a value": _for(_store(te.Cast("float32", Index("int64", I)))),
}

BAD: dict[str, tuple[Stmt, str]] = {
    "store beyond the end": (_for(_store(index=I + 1)), "index 0 of C is i + 1: 1..8, outside 0..7"),
    "read before the begin": (_for(_store(_load(I + -1))), "index 0 of A is i - 1: -1..6"),
    "update beyond the end": (_for(Update("sum", (C,), (I + 4,), (ONE,))), "index 0 of C is i + 4: 4..11"),
    "condition of a select": (
        _for(_store(te.Select("float32", te.Binary("bool", "gt", _load(I + 1), ONE), ONE, ONE))), "index 0 of A",
    ),
    "wrong number of indices": (_for(Store(C, (I, I), ONE)), "buffer C of 1 dimensions has 2 indices"),
    "variable without its loop": (_for(_store(index=J)), "variable j is used outside its loop"),
    "variable in an operand": (_for(_store(te.Cast("float32", Index("int64", J)))), "variable j"),
    "variable in an index from memory": (
        _for(_store(_load(Linear({FromMemory(_load(J, B)): 1}, 0)))), "variable j is used outside its loop",
    ),
    "local buffer without a block": (_for(_store(_load(I, T))), "buffer T is used outside its life"),
    "local buffer after its block": (
        Block((), (Block((T,), (_for(_store(buffer=T)),)), _for(_store(_load(I, T))))), "buffer T is used outside",
    ),
    "loop in itself": (_for(_for(_store())), "loop i is nested in itself"),
    "loop that never runs": (_for(_store(), extent=0), "loop i runs 0 times"),
    "unknown kind": (_for(_store(), "backwards"), "unknown kind 'backwards'"),
    "parallel in parallel": (_for(_for(_store(), PARALLEL, j), PARALLEL), "j is parallel inside another parallel loop"),
    "vectorize in vectorize": (_for(_for(_store(), VECTORIZE, j), VECTORIZE), "j is vectorize inside another"),
    "parallel in vectorize": (_for(_for(_store(), PARALLEL, j), VECTORIZE), "parallel inside a vectorized loop"),
    "where without a loop": (Where(i, ((0, 8, _store()),)), "where on i, which is not a loop around it"),
    "where with a gap": (_for(Where(i, ((0, 3, _store()), (4, 8, _store())))), "case 4..8 should begin at 3"),
    "where that ends early": (_for(Where(i, ((0, 3, _store()),))), "ends at 3, its loop at 8"),
    "an expression of te": (_for(_store(te.placeholder((8,), name="P")[0])), "Read has no place in a loop nest"),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_correct_nest_passes(name: str) -> None:
    verify(LoopNest("good", (A, B, C), GOOD[name]))


@pytest.mark.parametrize("name", BAD)
def test_broken_rule_is_named_with_the_nest(name: str) -> None:
    body, message = BAD[name]
    with pytest.raises(LoweringError) as error:
        verify(LoopNest("bad", (A, B, C), body))
    assert message in str(error.value)
    assert "\ndef bad(A: float32[8], B: int64[8], C: float32[8]):" in str(error.value)
