"""How many operations of each kind one execution of a statement does."""

from __future__ import annotations

from functools import lru_cache

from tilewright.schedule import Stage
from tilewright.te import (
    COMPARISONS,
    DOT4,
    FLOAT_FUNCTIONS,
    Axis,
    Binary,
    Cast,
    Const,
    Expr,
    Read,
    Reduce,
    Select,
    Unary,
    Var,
    children,
    collect_reads,
    is_float,
    visit,
)
from tilewright.te.algorithms import choices

KINDS = (
    "float_mad",
    "float_addsub",
    "float_mul",
    "float_divmod",
    "float_cmp",
    "float_math",
    "float_other",
    "int_mad",
    "int_addsub",
    "int_mul",
    "int_divmod",
    "int_cmp",
    "int_other",
    "bool",
    "select",
    "cast",
)

_BINARY = {
    "add": "addsub",
    "sub": "addsub",
    "mul": "mul",
    "div": "divmod",
    "floordiv": "divmod",
    "mod": "divmod",
    "min": "cmp",
    "max": "cmp",
    "pow": "math",
    DOT4: "mad",
}
_COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "argmax": "max", "argmin": "min"}


def count_operations(stage: Stage) -> dict[str, int]:
    """Operations of the stage's statement by kind; a reduction counts as its update.

    A product that is only added to something is a fused multiply-add. Index arithmetic is not counted: it becomes
    addresses. A node that several others use is computed once.
    """
    return dict(_counts(stage.body, tuple(_without_guard(stage, value) for value in values_of(stage))))


@lru_cache(maxsize=256)
def _counts(body: Expr, values: tuple[Expr, ...]) -> dict[str, int]:
    """Of the values that the statement computes, which are the same ones in many schedules of a task."""
    counts = dict.fromkeys(KINDS, 0)
    nodes = value_nodes(values)
    uses = _count_uses(nodes, values)
    fused: set[int] = set()
    if isinstance(body, Reduce):
        _count_update(body.op, values, uses, fused, counts)
    for node in nodes:
        if isinstance(node, Binary) and node.op in ("add", "sub"):
            product = next((x for x in (node.a, node.b) if _is_single_product(x, uses, fused)), None)
            if product is not None:
                fused.add(id(product))
                counts[_kind(node.dtype, "mad")] += 1
                continue
        if id(node) in fused:
            continue
        kind = node_kind(node)
        if kind is not None:
            counts[kind] += 1
    return counts


def values_of(stage: Stage) -> tuple[Expr, ...]:
    """What one execution of the statement computes; of formulas out of which a loop that is written out chooses, one.

    It is the longest: what others share with it is computed once.
    """
    return _values(stage.body, stage.axes)


@lru_cache(maxsize=256)
def _values(body: Expr, axes: tuple[Axis, ...]) -> tuple[Expr, ...]:
    if isinstance(body, Reduce):
        return body.values
    found = choices(body, axes)
    return (body,) if found is None else (max(found[1], key=lambda value: len(value_nodes((value,)))),)


def flops(counts: dict[str, int]) -> int:
    """Arithmetic operations, a multiply-add as two."""
    return sum(number * (2 if kind.endswith("mad") else 1) for kind, number in counts.items())


def _without_guard(stage: Stage, value: Expr) -> Expr:
    """The value inside a test for the end of a reduction that does not divide.

    The test is there for all candidates if one of them needs it, and lowering takes it out of the loops.
    """
    if not isinstance(value, Select) or not isinstance(value.b, Const):
        return value
    if stage.packs is not None or stage.computes_packed:
        return value.a
    return value if end_of_reduction(stage, value) is None else value.a


def end_of_reduction(stage: Stage, value: Expr) -> Expr | None:
    """The test for the end of a reduction around a value of its parts; None where there is none."""
    if ".rf" not in stage.name or not isinstance(value, Select) or not isinstance(value.b, Const):
        return None
    ends: set[Expr] = {*stage.reduce_axes, *stage.axes[-1:]}
    used: list[Expr] = []
    visit(value.cond, lambda e: used.append(e) if isinstance(e, Var) else None)
    return value.cond if ends.issuperset(used) else None


def _count_update(
    reduction: str, values: tuple[Expr, ...], uses: dict[int, int], fused: set[int], counts: dict[str, int]
) -> None:
    dtype = values[0].dtype
    op = _COMBINE[reduction]
    if op == "add" and _is_single_product(values[0], uses, fused):
        fused.add(id(values[0]))
        counts[_multiply_add(values[0])] += 1
        return
    counts[_kind(dtype, _BINARY[op])] += 1
    if len(values) > 1:
        counts["select"] += 1


def _multiply_add(product: Expr) -> str:
    """The kind of a product that is added to a sum; one of words costs what one of floats does, in as many lanes."""
    is_of_words = isinstance(product, Binary) and product.op == DOT4
    return "float_mad" if is_of_words else _kind(product.dtype, "mad")


def value_nodes(values: tuple[Expr, ...]) -> list[Expr]:
    """All nodes that compute values, users before what they use; the indices of reads are left out."""
    order: list[Expr] = []
    seen: set[int] = set()

    def visit(e: Expr) -> None:
        if id(e) in seen:
            return
        seen.add(id(e))
        for child in _operands(e):
            visit(child)
        order.append(e)

    for value in values:
        visit(value)
    return order[::-1]


def _operands(e: Expr) -> tuple[Expr, ...]:
    return () if isinstance(e, Read) else tuple(child for child in children(e) if not _is_index(child))


def _is_index(e: Expr) -> bool:
    """Whether it is arithmetic on loop variables alone."""
    return e.dtype == "int64" and not collect_reads(e)


def _count_uses(nodes: list[Expr], values: tuple[Expr, ...]) -> dict[int, int]:
    uses = {id(node): 0 for node in nodes}
    for used in (*values, *(child for node in nodes for child in _operands(node))):
        uses[id(used)] += 1
    return uses


def _is_single_product(e: Expr, uses: dict[int, int], fused: set[int]) -> bool:
    return isinstance(e, Binary) and e.op in ("mul", DOT4) and uses.get(id(e)) == 1 and id(e) not in fused


def node_kind(e: Expr) -> str | None:
    """The kind of operation that a node is by itself; None where it is none."""
    if isinstance(e, Binary):
        if e.op in ("and", "or"):
            return "bool"
        return _kind(e.a.dtype, "cmp" if e.op in COMPARISONS else _BINARY[e.op])
    if isinstance(e, Unary):
        if e.op == "not":
            return "bool"
        return "float_math" if e.op in FLOAT_FUNCTIONS else _kind(e.dtype, "other")
    if isinstance(e, Select):
        return "select"
    return "cast" if isinstance(e, Cast) else None


def _kind(dtype: str, what: str) -> str:
    return f"float_{what}" if is_float(dtype) else f"int_{what}"
