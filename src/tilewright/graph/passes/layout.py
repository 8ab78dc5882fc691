"""Permutations of axes, as Transpose has them: output axis i is input axis perm[i]."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from tilewright.operators import TensorType

T = TypeVar("T")

Perm = tuple[int, ...]


@lru_cache
def identity(rank: int) -> Perm:
    return tuple(range(rank))


def permuted(items: Sequence[T], perm: Sequence[int]) -> tuple[T, ...]:
    """What a Transpose makes of a shape."""
    return tuple([items[axis] for axis in perm])


@lru_cache
def transposed(type_: TensorType, perm: Perm) -> TensorType:
    """The type of what a Transpose gives."""
    return TensorType(type_.dtype, permuted(type_.shape, perm))


def compose(first: Sequence[int], second: Sequence[int]) -> Perm:
    """The Transpose that is `first` and then `second`."""
    return tuple([first[axis] for axis in second])


def inverse(perm: Sequence[int]) -> Perm:
    """The Transpose that undoes another."""
    return _inverse(tuple(perm))


@lru_cache
def _inverse(perm: Perm) -> Perm:
    return tuple(sorted(range(len(perm)), key=lambda i: perm[i]))


@lru_cache
def to_channels_last(rank: int) -> Perm:
    """From [N, C, *spatial] to [N, *spatial, C]."""
    return (0, *range(2, rank), 1)


def to_channels_first(rank: int) -> Perm:
    """From [N, *spatial, C] to [N, C, *spatial]."""
    return inverse(to_channels_last(rank))


def extended(perm: Sequence[int], rank: int) -> Perm:
    """The same Transpose of a tensor with more axes in front, as broadcasting adds them."""
    return _extended(tuple(perm), rank - len(perm))


@lru_cache
def _extended(perm: Perm, more: int) -> Perm:
    return (*range(more), *(axis + more for axis in perm))


def is_view(shape: Sequence[int], perm: Sequence[int]) -> bool:
    """Whether a Transpose moves only dimensions of one, so that the bytes stay where they are."""
    moved = [axis for axis in perm if shape[axis] != 1]
    return moved == sorted(moved)


def reshaped(shape: Sequence[int], perm: Sequence[int], target: Sequence[int]) -> tuple[tuple[int, ...], Perm] | None:
    """How to reshape before a Transpose instead of after it.

    Reshape(Transpose(x, perm), target) is Transpose(Reshape(x, shape'), perm') for the result (shape', perm'), if each
    dimension of the target is made of axes that lie together in x already.

    >>> reshaped((2, 7, 7, 64), (0, 3, 1, 2), (2, 64, 49))
    ((2, 49, 64), (0, 2, 1))
    >>> reshaped((2, 7, 7, 64), (0, 3, 1, 2), (2, 3136)) is None
    True
    """
    groups = _groups(permuted(shape, perm), target)
    if groups is None:
        return None
    place = {axis: i for i, axis in enumerate(axis for axis, size in enumerate(shape) if size != 1)}
    starts = []
    for sources, _ in groups:
        places = [place[perm[i]] for i in sources]
        if places != list(range(places[0], places[0] + len(places))):
            return None
        starts.append(places[0])
    ordered = [groups[i][1] for i in sorted(range(len(groups)), key=lambda i: starts[i])]
    axes = [axis for group in ordered for axis in group]
    return tuple(target[axis] for axis in axes), inverse(axes)


def _groups(source: Sequence[int], target: Sequence[int]) -> list[tuple[list[int], list[int]]] | None:
    """Axes of `source` larger than one, and the axes of `target` that have the same elements, in order."""
    groups: list[tuple[list[int], list[int]]] = []
    pending = [axis for axis, size in enumerate(source) if size != 1]
    leading: list[int] = []
    wanted, have = 1, 1
    for axis, size in enumerate(target):
        if size == 1:
            (groups[-1][1] if groups else leading).append(axis)
            continue
        if wanted == have:
            groups.append(([], []))
            wanted, have = 1, 1
        groups[-1][1].append(axis)
        wanted *= size
        while have < wanted and pending:
            groups[-1][0].append(pending.pop(0))
            have *= source[groups[-1][0][-1]]
    if pending or wanted != have or not groups:
        return None
    groups[0][1][:0] = leading
    return groups
