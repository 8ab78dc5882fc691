"""Sums of products of bytes by `te.dot4`, four to a word.

    sum(cast(A[i, k], int32) * cast(B[k, j], int32), axis=k)

is a sum of `dot4(A.words[i, k], B.words[k, j])` over a quarter as many places, and exact as it is. The instruction
takes unsigned bytes and signed ones. Where both operands are of one kind, those of one are moved by 128, and what that
adds to a sum is 128 times the sum of the other's: A's where B is a constant, since a constant is packed for one reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.te.algorithms.algorithm import Algorithm, Rewritten
from tilewright.te.expr import DOT4, Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Var, binary, cast
from tilewright.te.tensor import Tensor
from tilewright.te.transform import substitute, visit
from tilewright.te.words import WORD_BYTES, word_of

_HALF = 128
_ONES = int.from_bytes(bytes([1] * WORD_BYTES), "little")


class ByteProducts(Algorithm):
    """Sums of products of bytes, four of them at once."""

    @property
    def what_it_computes(self) -> str:
        return (
            "sums in int32 of products of int8 or uint8, each cast to int32, over an axis that is an index of both "
            "operands"
        )

    def saving(self, tensor: Tensor) -> float:
        found = find_byte_product(tensor)
        return 0.0 if found is None else found.over.extent / _num_words(found.over)

    def rewritten(self, tensor: Tensor) -> Rewritten | None:
        found = find_byte_product(tensor)
        return None if found is None else _Rewriting(found).rewritten()


@dataclass(frozen=True, slots=True)
class ByteProduct:
    """How a tensor reads its two operands; words are along the axis `over` of its sum."""

    tensor: Tensor
    first: Read
    second: Read
    over: Axis


def find_byte_product(tensor: Tensor) -> ByteProduct | None:
    """The sum of products of bytes that a tensor is; None if it is none."""
    body = tensor.body
    if not isinstance(body, Reduce) or body.op != "sum" or body.dtype != "int32":
        return None
    product = body.values[0]
    if not isinstance(product, Binary) or product.op != "mul":
        return None
    first, second = _bytes(product.a), _bytes(product.b)
    if first is None or second is None:
        return None
    fitting = [axis for axis in body.axes if _is_own_index(first, axis) and _is_own_index(second, axis)]
    if not fitting:
        return None
    over = max(fitting, key=lambda axis: (axis.extent / _num_words(axis), axis.extent))
    return ByteProduct(tensor, first, second, over)


def _bytes(e: Expr) -> Read | None:
    read = e.x if isinstance(e, Cast) else None
    return read if isinstance(read, Read) and read.dtype in ("int8", "uint8") else None


def _is_own_index(read: Read, axis: Axis) -> bool:
    """Whether one index is the axis, and no other has it."""
    return [index for index in read.indices if _has(index, axis)] == [axis]


def _has(e: Expr, axis: Axis) -> bool:
    found: list[Expr] = []
    visit(e, lambda part: found.append(part) if part is axis else None)
    return bool(found)


def _num_words(axis: Axis) -> int:
    return -(-axis.extent // WORD_BYTES)


@dataclass(frozen=True, slots=True)
class _Words:
    """An operand as words: the stages that make them, and where they are read in the place of the bytes."""

    stages: tuple[Tensor, ...]
    indices: tuple[Expr, ...]
    dim: int

    @property
    def tensor(self) -> Tensor:
        return self.stages[-1]


class _Rewriting:
    """One rewriting of a sum of products of bytes."""

    def __init__(self, found: ByteProduct) -> None:
        assert isinstance(found.tensor.body, Reduce)
        self.found = found
        self.name = found.tensor.name
        self.reduce_axes = found.tensor.body.axes
        self.words = Axis("int64", found.over.name, _num_words(found.over), True)

    def rewritten(self) -> Rewritten:
        data, weights = self.found.first, self.found.second
        if data.tensor.is_constant and not weights.tensor.is_constant:
            data, weights = weights, data
        is_moved = data.dtype == weights.dtype
        made, packed = self._words(data, "data", False), self._words(weights, "weights", is_moved)
        is_data_unsigned = data.dtype == "uint8"
        product = self._dot(made, packed) if is_data_unsigned else self._dot(packed, made)
        stages = (*made.stages, *packed.stages)
        ahead = tuple(
            stage
            for read, part in ((data, made), (weights, packed))
            for stage in part.stages
            if read.tensor.is_constant
        )
        total = Reduce("int32", "sum", (product,), self._summed_axes())
        if not is_moved:
            return Rewritten(stages, ahead, total)
        corrections, body = self._corrected(total, made, is_data_unsigned)
        return Rewritten((*stages, *corrections), ahead, body)

    def _summed_axes(self) -> tuple[Axis, ...]:
        return tuple(self.words if axis is self.found.over else axis for axis in self.reduce_axes)

    def _dot(self, unsigned: _Words, signed: _Words) -> Expr:
        return binary(DOT4, *(Read("int32", words.tensor, words.indices) for words in (unsigned, signed)))

    # --- words -------------------------------------------------------------------------------------------------------

    def _words(self, read: Read, kind: str, is_moved: bool) -> _Words:
        """An operand by words along the axis of the sum; padding is put around the words instead of the bytes."""
        dim = read.indices.index(self.found.over)
        indices = (*read.indices[:dim], self.words, *read.indices[dim + 1 :])
        name = f"{self.name}.{kind}"
        padding = None if is_moved else _padding_of(read.tensor, dim, self.found.over.extent)
        if padding is None:
            return _Words((self._packed(name, read.tensor, dim, is_moved),), indices, dim)
        inner = padding.inside
        axes = tuple(
            self._word_axis(axis.name) if n == dim else _new_axis(axis) for n, axis in enumerate(read.tensor.axes)
        )
        place: dict[Var, Expr] = dict(zip(read.tensor.axes, axes, strict=True))
        packed = self._packed(name, inner.tensor, inner.indices.index(read.tensor.axes[dim]), False)
        inside = Read("int32", packed, tuple(substitute(index, place) for index in inner.indices))
        body = Select("int32", substitute(padding.cond, place), inside, Const("int32", padding.word))
        return _Words((packed, _tensor(f"{name}.padded", axes, body)), indices, dim)

    def _word_axis(self, name: str) -> Axis:
        return Axis("int64", name, self.words.extent, False)

    def _packed(self, name: str, source: Tensor, dim: int, is_moved: bool) -> Tensor:
        """All of a tensor by words along a dimension, as far as it is summed, filled up with zeros."""
        axes = tuple(
            self._word_axis(f"i{n}") if n == dim else Axis("int64", f"i{n}", extent, False)
            for n, extent in enumerate(source.shape)
        )

        def part(n: int, is_last: bool) -> Expr:
            place = binary("add", binary("mul", axes[dim], WORD_BYTES), n)
            if is_last and n >= length % WORD_BYTES:
                return Const(source.dtype, 0)
            byte: Expr = Read(source.dtype, source, (*axes[:dim], place, *axes[dim + 1 :]))
            return _other_kind(byte) if is_moved else byte

        length = self.found.over.extent
        whole = word_of([part(n, False) for n in range(WORD_BYTES)])
        if length % WORD_BYTES:
            rest = word_of([part(n, True) for n in range(WORD_BYTES)])
            is_whole = binary("lt", axes[dim], length // WORD_BYTES)
            whole = rest if length < WORD_BYTES else Select("int32", is_whole, whole, rest)
        return _tensor(name, axes, whole)

    # --- what moving adds --------------------------------------------------------------------------------------------

    def _corrected(self, total: Reduce, data: _Words, is_unsigned: bool) -> tuple[tuple[Tensor, ...], Expr]:
        """The sums in a stage of their own, those of the data, and the body that adds what moving took or added.

        Data is summed along words first, and that over what is left of the sum: windows have elements in common.
        """
        outer = self.found.tensor.axes
        product = _copied(f"{self.name}.product", outer, total)
        sums = self._sums(data, is_unsigned)
        indices = (*data.indices[: data.dim], *data.indices[data.dim + 1 :])
        made = [product, sums]
        rest = tuple(axis for axis in self.reduce_axes if axis is not self.found.over)
        if rest:
            used = tuple(axis for axis in outer if any(_has(index, axis) for index in indices))
            over = Reduce("int32", "sum", (Read("int32", sums, indices),), rest)
            sums, indices = _copied(f"{self.name}.windows", used, over), used
            made.append(sums)
        off = binary("mul", Read("int32", sums, indices), _HALF if is_unsigned else -_HALF)
        return tuple(made), binary("add", Read("int32", product, outer), off)

    def _sums(self, data: _Words, is_unsigned: bool) -> Tensor:
        """The data, summed along its words."""
        axes = [Axis("int64", f"i{n}", extent, False) for n, extent in enumerate(data.tensor.shape)]
        axes[data.dim] = over = Axis("int64", "word", self.words.extent, True)
        word, ones = Read("int32", data.tensor, tuple(axes)), Const("int32", _ONES)
        value = binary(DOT4, word, ones) if is_unsigned else binary(DOT4, ones, word)
        body = Reduce("int32", "sum", (value,), (over,))
        return _copied(f"{self.name}.sums", [axis for axis in axes if not axis.is_reduce], body)


@dataclass(frozen=True, slots=True)
class _Padding:
    """What a tensor has inside where `cond` holds, and the word that is around it."""

    cond: Expr
    inside: Read
    word: int


def _padding_of(tensor: Tensor, dim: int, length: int) -> _Padding | None:
    """How a tensor pads another; None where it does not, or does along the dimension of the words."""
    body = tensor.body
    if not isinstance(body, Select) or not isinstance(body.a, Read) or not isinstance(body.b, Const):
        return None
    along = tensor.axes[dim]
    value = int(body.b.value)
    if _has(body.cond, along) or not _is_own_index(body.a, along) or (value and length % WORD_BYTES):
        return None
    word = int.from_bytes(bytes([value % 256] * WORD_BYTES), "little", signed=True)
    return _Padding(body.cond, body.a, word)


def _other_kind(byte: Expr) -> Expr:
    """A signed byte as an unsigned one, 128 more, or an unsigned one as a signed one, 128 less."""
    if byte.dtype == "int8":
        return cast(binary("add", cast(byte, "int32"), _HALF), "uint8")
    return cast(binary("sub", cast(byte, "int32"), _HALF), "int8")


def _copied(name: str, axes: Sequence[Axis], body: Reduce) -> Tensor:
    """A stage of its own with what stands at the axes, and is summed over, by new axes."""
    summed = {axis: Axis("int64", axis.name, axis.extent, True) for axis in body.axes}
    made = tuple(map(_new_axis, axes))
    values: dict[Var, Expr] = dict(zip(axes, made, strict=True))
    values.update(summed.items())
    value = substitute(body.values[0], values)
    return _tensor(name, made, Reduce(body.dtype, body.op, (value,), tuple(summed.values())))


def _tensor(name: str, axes: Sequence[Axis], body: Expr) -> Tensor:
    return Tensor(name, tuple(axis.extent for axis in axes), body.dtype, tuple(axes), body)


def _new_axis(like: Axis) -> Axis:
    return Axis("int64", like.name, like.extent, False)
