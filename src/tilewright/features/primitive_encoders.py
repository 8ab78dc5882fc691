"""Programs as sentences of primitives, as TLP reads them: as published, and in a form that says more.

Either reads primitives alone (`primitives`), so the steps of another tool's log do as well.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import UsageError
from tilewright.features.primitives import Primitive, PrimitiveReader, PrimitiveSequence
from tilewright.features.row_table import Cell, RowTable
from tilewright.schedule import Extent
from tilewright.schedule.steps import STEPS

ANSOR_STEPS = ("AN", "FU", "PR", "RE", "SP", "FSP", "FFSP", "SA", "CA", "CI", "CR", "CHR", "CHW", "RF")
AUTOTVM_KNOBS = ("sp", "ot", "an", "re")
OTHER = "other"
KINDS = (*STEPS, *ANSOR_STEPS, *AUTOTVM_KNOBS, OTHER)
"""What a primitive can be: a step of ours, one of Ansor's, a knob of AutoTVM's, or anything else."""

NUM_TOKENS = 4096
"""Tokens of names are below this; 0 is no name."""

_MOST = 10_000  # primitives that a program may have, or numbers of one; all are memory
_SALT = b"6"  # with it, the names that most programs use have tokens of their own
_KIND_COLUMNS = {kind: f"is_{kind}" for kind in KINDS}


@dataclass(frozen=True, eq=False)
class PublishedPrimitiveEncoder(PrimitiveReader):
    """TLP's features as published: a row for each primitive, cut or filled with zeros to one size.

    A row is the kind as one of many, and then the parameters: names as small whole numbers, and the numbers as they
    are. A name that is a number, as in Ansor's logs, is that number; any other is the number of its first appearance in
    the program. What does not fit is lost, and nothing tells a row of zeros from a primitive.

    The sizes are those of TLP for CPUs, 25 x (kinds + 11); for GPUs it has 40 and 9.
    """

    name = "primitives-published"
    length: int = 25
    num_parameters: int = 11

    def __post_init__(self) -> None:
        _check_sizes(self.options)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*_KIND_COLUMNS.values(), *_numbered("parameter", self.num_parameters))

    @property
    def num_rows(self) -> int:
        return self.length

    def encode_primitives(self, sequence: PrimitiveSequence, num_programs: int) -> NDArray[np.float32]:
        table = RowTable(self.columns, as_is=self.columns)
        columns = _numbered("parameter", self.num_parameters)
        appearances: dict[str, int] = {}
        for primitive in sequence[: self.length]:
            names = [_small_number(name, appearances) for name in primitive.names]
            parameters = [*names, *primitive.numbers]
            table.add({_kind_column(primitive): 1} | dict(zip(columns, parameters, strict=False)))
        table.fill_up(self.length)
        return table.values(num_programs)


@dataclass(frozen=True, eq=False)
class PrimitiveEncoder(PrimitiveReader):
    """A row for each primitive, with a mask, its place, the tokens of its names and its numbers on a log scale.

    A token is a fixed hash of the name, so a model's file needs no vocabulary; the names are canonical, so what stages
    and axes are called changes nothing. A number x becomes log2(2 + |x|) with its sign, so that none at all, 0, differs
    from the number 0. With a `length`, sequences are cut or filled up to it, and the mask of what was filled is 0.
    """

    name = "primitives"
    length: int | None = None
    num_names: int = 20
    num_numbers: int = 12

    def __post_init__(self) -> None:
        _check_sizes(self.options | {"length": 1 if self.length is None else self.length})

    @property
    def columns(self) -> tuple[str, ...]:
        kinds, tokens = _KIND_COLUMNS.values(), _numbered("token", self.num_names)
        return ("mask", *kinds, "from_first", "from_last", *tokens, *_numbered("number", self.num_numbers))

    @property
    def token_columns(self) -> slice:
        """Which columns hold tokens, all below NUM_TOKENS: what a model looks up in a table and does not scale."""
        start = len(_KIND_COLUMNS) + 3
        return slice(start, start + self.num_names)

    @property
    def num_rows(self) -> int | None:
        return self.length

    def encode_primitives(self, sequence: PrimitiveSequence, num_programs: int) -> NDArray[np.float32]:
        table = RowTable(self.columns, as_is=self.columns[self.token_columns.start :])
        tokens, numbers = _numbered("token", self.num_names), _numbered("number", self.num_numbers)
        for place, primitive in enumerate(sequence[: self.length]):
            row: dict[str, Cell] = {"mask": 1, _kind_column(primitive): 1}
            row |= {"from_first": place, "from_last": len(sequence) - 1 - place}
            row |= zip(tokens, map(token, primitive.names), strict=False)
            row |= zip(numbers, map(_scaled, primitive.numbers), strict=False)
            table.add(row)
        table.fill_up(self.length or 1)
        return table.values(num_programs)


@dataclass(frozen=True, eq=False)
class FlatPrimitiveEncoder(PrimitiveReader):
    """One row: the tokens of the names and the scaled numbers of the primitives, one primitive beside the other.

    For trees, and for programs of one sketch, or of one template in another tool's log, in which a place means the same
    in all. Primitives beyond `length`, and more names and numbers of one than there are columns for, are left out.
    """

    name = "primitives-flat"
    length: int = 24
    num_names: int = 3
    num_numbers: int = 6

    def __post_init__(self) -> None:
        _check_sizes(self.options)

    @property
    def columns(self) -> tuple[str, ...]:
        own = (*_numbered("token", self.num_names), *_numbered("number", self.num_numbers))
        return ("num_primitives", *(f"{place}.{name}" for place in range(self.length) for name in own))

    @property
    def num_rows(self) -> int:
        return 1

    def encode_primitives(self, sequence: PrimitiveSequence, num_programs: int) -> NDArray[np.float32]:
        table = RowTable(self.columns, as_is=self.columns[1:])
        tokens, numbers = _numbered("token", self.num_names), _numbered("number", self.num_numbers)
        row: dict[str, Cell] = {"num_primitives": len(sequence)}
        for place, primitive in enumerate(sequence[: self.length]):
            row |= {f"{place}.{name}": token(x) for name, x in zip(tokens, primitive.names, strict=False)}
            row |= {f"{place}.{name}": _scaled(x) for name, x in zip(numbers, primitive.numbers, strict=False)}
        table.add(row)
        return table.values(num_programs)


@lru_cache(maxsize=NUM_TOKENS)
def token(name: str) -> int:
    """The token of a name: the same in every process, from 1 to NUM_TOKENS - 1.

    >>> token("s0.1") == token("s0.1") != token("s1.1")
    True
    """
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, salt=_SALT).digest()
    return 1 + int.from_bytes(digest, "little") % (NUM_TOKENS - 1)


def _kind_column(primitive: Primitive) -> str:
    return _KIND_COLUMNS.get(primitive.kind, _KIND_COLUMNS[OTHER])


def _numbered(what: str, count: int) -> tuple[str, ...]:
    return tuple(f"{what}{number}" for number in range(count))


def _small_number(name: str, appearances: dict[str, int]) -> int:
    is_number = name.isascii() and name.isdigit()
    return int(name[:9]) if is_number else appearances.setdefault(name, 1 + len(appearances))


def _scaled(number: Extent) -> Cell:
    exact = np.asarray(number, np.float64)
    scaled: NDArray[np.float64] = np.copysign(np.log2(2 + np.abs(exact)), exact)
    return scaled if scaled.ndim else float(scaled)


def _check_sizes(options: dict[str, Any]) -> None:
    for name, value in options.items():
        least = 1 if name == "length" else 0
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
            raise UsageError(
                f"{name} of an encoder of primitives is a whole number of at least {least} and at most {_MOST}, got "
                f"{shown(value)}; leave it out for the usual one"
            )
