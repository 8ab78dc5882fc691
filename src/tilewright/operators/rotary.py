"""RotaryEmbedding: pairs of elements of each attention head, rotated by an angle that depends on the position."""

from __future__ import annotations

from collections.abc import Callable

from tilewright import te
from tilewright.operators.indexing import from_front
from tilewright.operators.registry import Call, MisfitError, NotCompilableError, operator
from tilewright.te import Expr, Tensor


@operator("RotaryEmbedding")
def rotary_embedding(call: Call) -> Tensor:
    """Heads as [batch, head, position, element] or, joined, as [batch, position, head and element]."""
    X = call.tensor(0)
    num_heads = call.attribute("num_heads", 0) if X.ndim == 3 else X.shape[1]
    if X.ndim not in (3, 4) or num_heads < 1:
        raise NotCompilableError(f"RotaryEmbedding has an input of shape {X.shape} and {num_heads} heads")
    size = X.shape[-1] // num_heads if X.ndim == 3 else X.shape[-1]
    num_rotated = call.attribute("rotary_embedding_dim", 0) or size
    if not 0 < num_rotated <= size or num_rotated % 2 or (X.ndim == 3 and X.shape[-1] % num_heads):
        raise MisfitError(f"it rotates {num_rotated} of {size} elements of each of {num_heads} heads")
    for cache in (call.tensor(1), call.tensor(2)):
        if cache.ndim == 0 or cache.shape[-1] != num_rotated // 2:
            raise MisfitError(f"its angles of shape {cache.shape} are not those of {num_rotated // 2} pairs")
    cosine, sine = _cached(call, 1), _cached(call, 2)
    rotated = _interleaved if call.attribute("interleaved", 0) else _halves

    def element(*i: Expr) -> Expr:
        if X.ndim == 4:
            batch, head, position, e = i
            start: te.ExprLike = 0
        else:
            batch, position, joined = i
            e, start = joined % size, joined // size * size

        def at(place: Expr) -> Expr:
            return X[batch, head, position, place] if X.ndim == 4 else X[batch, position, start + place]

        def angle(pair: Expr) -> tuple[Expr, Expr]:
            return cosine(batch, position, pair), sine(batch, position, pair)

        result = rotated(e, num_rotated, at, angle)
        return result if num_rotated == size else te.select(e < num_rotated, result, at(e))

    return te.compute(X.shape, element, call.name())


def _cached(call: Call, position: int) -> Callable[[Expr, Expr, Expr], Expr]:
    """How to read a cache [position, pair] by the operand of positions, or one [batch, position, pair] without it."""
    cache, places = call.tensor(position), call.optional(3)
    if places is None:
        X = call.tensor(0)
        if cache.shape[:-1] != (X.shape[0], X.shape[-2]):
            raise MisfitError(f"its angles of shape {cache.shape} are not those of {X.shape[-2]} positions")
        return lambda batch, place, pair: cache[batch, place, pair]
    return lambda batch, place, pair: cache[from_front(places[batch, place], cache.shape[0]), pair]


_At = Callable[[Expr], Expr]
_Angle = Callable[[Expr], tuple[Expr, Expr]]


def _interleaved(e: Expr, num_rotated: int, at: _At, angle: _Angle) -> Expr:
    """Pairs are neighbours."""
    pair = e // 2
    cosine, sine = angle(pair)
    first, second = at(pair * 2), at(pair * 2 + 1)
    return te.select(te.equal(e % 2, 0), cosine * first - sine * second, sine * first + cosine * second)


def _halves(e: Expr, num_rotated: int, at: _At, angle: _Angle) -> Expr:
    """The first half is paired with the second."""
    half = num_rotated // 2
    cosine, sine = angle(e)
    first = cosine * at(e) - sine * at(e + half)
    cosine, sine = angle(e - half)
    return te.select(e < half, first, sine * at(e - half) + cosine * at(e))
