"""Einsum: the equation read into one sum of products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from tilewright import te
from tilewright.operators.registry import Call, NotCompilableError, operator
from tilewright.te import Axis, Expr, Tensor


@dataclass(frozen=True, slots=True)
class Equation:
    """The labels of each operand and of the output. Axes that an ellipsis stands for are labelled by numbers.

    These are counted from the last, so that those of operands with fewer of them align as in broadcasting.
    """

    operands: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]


def read_equation(text: str, ranks: Sequence[int]) -> Equation:
    """The equation for operands of these ranks.

    >>> read_equation("...ij,jk", [3, 2])
    Equation(operands=(('0', 'i', 'j'), ('j', 'k')), output=('0', 'i', 'k'))
    """
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise NotCompilableError(f"Einsum has {len(ranks)} inputs for the {len(terms)} terms of {text!r}")
    operands = tuple(_labels(term, rank) for term, rank in zip(terms, ranks, strict=True))
    hidden = max((sum(label.isdigit() for label in labels) for labels in operands), default=0)
    ellipsis = tuple(str(n) for n in reversed(range(hidden)))
    if arrow:
        before, dots, after = right.partition("...")
        return Equation(operands, (*before, *(ellipsis if dots else ()), *after))
    every = [label for labels in operands for label in labels if not label.isdigit()]
    return Equation(operands, (*ellipsis, *sorted(label for label in every if every.count(label) == 1)))


def _labels(term: str, rank: int) -> tuple[str, ...]:
    before, dots, after = term.partition("...")
    hidden = rank - len(before) - len(after)
    if hidden < 0 or (hidden > 0 and not dots):
        raise NotCompilableError(f"Einsum has an input of {rank} dimensions for the term {term!r}")
    return (*before, *(str(n) for n in reversed(range(hidden))), *after)


@operator("Einsum")
def einsum(call: Call) -> Tensor:
    tensors = [call.tensor(n) for n in range(len(call.tensors))]
    equation = read_equation(call.attribute("equation", ""), [T.ndim for T in tensors])
    extents = _extents(equation, tensors)
    summed = [label for label in extents if label not in equation.output]
    over = {label: te.reduce_axis(extents[label], f"k_{label}") for label in summed}

    def product(*i: Expr) -> Expr:
        places: dict[str, Expr] = {**dict(zip(equation.output, i, strict=True)), **over}
        factors = [_read(T, labels, places) for T, labels in zip(tensors, equation.operands, strict=True)]
        value = reduce(lambda a, b: a * b, factors)
        return te.sum(value, axis=list[Axis](over.values())) if over else value

    return te.compute([extents[label] for label in equation.output], product, call.name("einsum"))


def _extents(equation: Equation, tensors: Sequence[Tensor]) -> dict[str, int]:
    """The extent of each label; an axis of 1 is broadcast."""
    extents: dict[str, int] = {}
    for T, labels in zip(tensors, equation.operands, strict=True):
        for label, extent in zip(labels, T.shape, strict=True):
            known = extents.get(label, 1)
            if 1 not in (known, extent) and known != extent:
                raise NotCompilableError(f"Einsum has the extents {known} and {extent} for {label!r}")
            extents[label] = max(known, extent)
    missing = [label for label in equation.output if label not in extents]
    if missing or len(set(equation.output)) != len(equation.output):
        raise NotCompilableError(f"Einsum cannot give the output {''.join(equation.output)!r}")
    return extents


def _read(T: Tensor, labels: Sequence[str], places: dict[str, Expr]) -> Expr:
    return T[tuple(0 if extent == 1 else places[label] for label, extent in zip(labels, T.shape, strict=True))]
