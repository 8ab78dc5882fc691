"""What cost models read: an encoder turns the programs of a population into an array.

A cost model names its encoder. Whoever writes a model that looks at something else writes an encoder: one class with
one method, whose work is array operations over the whole population.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.features.hardware import Hardware
from tilewright.features.roofline import estimate_cycles, roofline
from tilewright.features.statements import ESTIMATE, FEATURE_NAMES, statement_features
from tilewright.space import Population


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
    def options(self) -> dict[str, Any]:
        """The options of the constructor."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

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
        return statement_features(population.schedule, len(population), hardware_of(population)).values


class EstimateEncoder(Encoder):
    """A row for each statement, with one number: the logarithm of the cycles that it takes by the roofline."""

    name = "estimate"

    @property
    def columns(self) -> tuple[str, ...]:
        return (ESTIMATE,)

    def encode(self, population: Population) -> NDArray[np.float32]:
        hardware = hardware_of(population)
        cycles = estimate_cycles(roofline(population.schedule, len(population), hardware), hardware.core)
        return np.log2(1 + cycles).T[:, :, np.newaxis].astype(np.float32)


class ChoicesEncoder(Encoder):
    """One row: the number of the choice that each knob has made."""

    name = "choices"

    def encode(self, population: Population) -> NDArray[np.float32]:
        return population.rows[:, np.newaxis, :].astype(np.float32)


def hardware_of(population: Population) -> Hardware:
    """The device that the population is for."""
    options = population.sketch.options
    return Hardware.from_target(options.target, options.threads)
