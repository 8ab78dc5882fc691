"""What cost models read: an encoder turns the programs of a population into an array.

A cost model names its encoder. Whoever writes a model that looks at something else writes an encoder: one class with
one method, whose work is array operations over the whole population.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from reprlib import repr as shown
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import UsageError
from tilewright.features.analysis import Statement, analyze
from tilewright.features.hardware import HARDWARE_NAMES, Hardware
from tilewright.features.roofline import bounds_of, estimate_cycles
from tilewright.features.statements import ESTIMATE, FEATURE_NAMES, PUBLISHED_FEATURE_NAMES, table_of
from tilewright.space import Population

_PUBLISHED = [FEATURE_NAMES.index(name) for name in PUBLISHED_FEATURE_NAMES]


@dataclass(frozen=True, eq=False)
class Encoder(ABC):
    """Turns programs into `values[candidate, row, number]`; what a row is, the encoder says.

    All candidates of a sketch have as many rows; those of another sketch may have more or fewer. The numbers are
    finite, and depend on the candidate alone. An encoder is a value, and a dataclass if it has options: two of one
    class with the same options are the same, and give the same numbers in any process.
    """

    name: ClassVar[str]

    @abstractmethod
    def encode(self, population: Population) -> NDArray[np.float32]:
        """The array of a population, on the device that its sketch was derived for."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What each number of a row is; empty where that differs from sketch to sketch."""
        return ()

    @property
    def num_rows(self) -> int | None:
        """How many rows every program has; None where that differs. Then a row of zeros alone is the only one."""
        return None

    @property
    def options(self) -> dict[str, Any]:
        """The options of the constructor."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check_counts(self) -> None:
        """For encoders whose options are numbers of columns: each is from 1 to 256."""
        for option, value in self.options.items():
            if type(value) is not int or not 1 <= value <= 256:
                raise UsageError(f"{option} of the encoder {self.name} is from 1 to 256, got {value!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoder) and type(self) is type(other) and self.options == other.options

    def __hash__(self) -> int:
        return hash((type(self), *self.options.values()))


class StatementEncoder(Encoder):
    """A row for each statement that is executed, with its features: Ansor's, and more."""

    name = "statements"

    @property
    def columns(self) -> tuple[str, ...]:
        return FEATURE_NAMES

    def encode(self, population: Population) -> NDArray[np.float32]:
        return table_of(statements_of(population), len(population), hardware_of(population)).values


class PublishedStatementEncoder(Encoder):
    """A row for each statement with the features that Ansor has, and TenSet's models read: none of a sixth group.

    What is always 0 on a processor, such as threads of a GPU, is left out.
    """

    name = "statements-published"

    @property
    def columns(self) -> tuple[str, ...]:
        return PUBLISHED_FEATURE_NAMES

    def encode(self, population: Population) -> NDArray[np.float32]:
        return np.ascontiguousarray(StatementEncoder().encode(population)[:, :, _PUBLISHED])


class EstimateEncoder(Encoder):
    """A row for each statement, with one number: the logarithm of the cycles that it takes by the roofline."""

    name = "estimate"

    @property
    def columns(self) -> tuple[str, ...]:
        return (ESTIMATE,)

    def encode(self, population: Population) -> NDArray[np.float32]:
        hardware = hardware_of(population)
        cycles = estimate_cycles(bounds_of(statements_of(population), hardware), hardware.core)
        return np.log2(1 + cycles).T[:, :, np.newaxis].astype(np.float32)


class ChoicesEncoder(Encoder):
    """One row: the number of the choice that each knob has made."""

    name = "choices"

    @property
    def num_rows(self) -> int:
        return 1

    def encode(self, population: Population) -> NDArray[np.float32]:
        return population.rows[:, np.newaxis, :].astype(np.float32)


class HardwareEncoder(Encoder):
    """One row, the same for all programs: the device, as log2(1 + x) of its numbers."""

    name = "hardware"

    @property
    def columns(self) -> tuple[str, ...]:
        return HARDWARE_NAMES

    @property
    def num_rows(self) -> int:
        return 1

    def encode(self, population: Population) -> NDArray[np.float32]:
        numbers = list(hardware_of(population).numbers.values())
        row = np.log2(1 + np.array(numbers)).astype(np.float32)
        return np.broadcast_to(row, (len(population), 1, len(row))).copy()


@dataclass(frozen=True, eq=False)
class JoinedEncoder(Encoder):
    """The rows of several encoders, one after the other, each with columns of its own and 0 in those of the others.

    >>> JoinedEncoder((StatementEncoder(), HardwareEncoder())).columns[-1]
    'hardware.region_cycles'
    """

    name = "joined"
    parts: tuple[Encoder, ...]

    def __post_init__(self) -> None:
        if not self.parts or any(isinstance(part, JoinedEncoder) for part in self.parts):
            raise UsageError(
                f"encoders are joined from at least one, none of them joined itself, got {shown(self.parts)}; "
                f"give JoinedEncoder a tuple of single ones"
            )
        twice = next((part for n, part in enumerate(self.parts) if part in self.parts[:n]), None)
        if twice is not None:
            raise UsageError(f"encoders that are joined differ from one another, got {twice.name} twice; give it once")

    @property
    def columns(self) -> tuple[str, ...]:
        if not all(part.columns for part in self.parts):
            return ()
        names = [part.name for part in self.parts]
        own = [f"{name}{n}" if (n := names[:k].count(name)) else name for k, name in enumerate(names)]
        return tuple(f"{name}.{column}" for name, part in zip(own, self.parts, strict=True) for column in part.columns)

    def encode(self, population: Population) -> NDArray[np.float32]:
        return self.join([part.encode(population) for part in self.parts])

    def join(self, encoded: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """What its parts gave for the same programs, as one array."""
        shape = len(encoded[0]), sum(each.shape[1] for each in encoded), sum(each.shape[2] for each in encoded)
        values = np.zeros(shape, np.float32)
        row = column = 0
        for each in encoded:
            _, num_rows, width = each.shape
            values[:, row : row + num_rows, column : column + width] = each
            row, column = row + num_rows, column + width
        return values


def hardware_of(population: Population) -> Hardware:
    """The device that the population is for."""
    options = population.sketch.options
    return Hardware.from_target(options.target, options.threads)


@lru_cache(maxsize=1)
def statements_of(population: Population) -> list[Statement]:
    """The analysed statements of the population; several encoders of one population share them."""
    return analyze(population.schedule, len(population), hardware_of(population))
