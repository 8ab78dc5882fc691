"""Ours: boosted trees that say what the analytical model gets wrong, as a factor for the cycles of each statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.arguments import Range
from tilewright.cost_model.analytical import score_of
from tilewright.cost_model.array_file import names_array, names_of
from tilewright.cost_model.base import CostModel
from tilewright.cost_model.examples import Examples
from tilewright.cost_model.forest import NAMES, NUMBERS, Forest, checked_columns, numbers_of
from tilewright.cost_model.option_ranges import COUNTS, PART, POSITIVE, SHARE, TREES
from tilewright.cost_model.tree_objectives import Derivatives, ProgramObjective, RankInLists, StatementObjective
from tilewright.errors import UsageError
from tilewright.features import (
    ESTIMATE,
    Encoder,
    HardwareEncoder,
    JoinedEncoder,
    ProgramEncoder,
    StatementEncoder,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ENCODER = JoinedEncoder((StatementEncoder(), ProgramEncoder(), HardwareEncoder()))
_OWN_COLUMNS = ("share", "cycles", "num_statements")
_COLUMNS = (*_ENCODER.columns, *_OWN_COLUMNS)
_UNNAMED = tuple(name for name in _COLUMNS if name != "program.num_algorithm")
"""The columns when files did not name theirs yet, in whose order such a file has them; what came later is left out."""
_ESTIMATE = _COLUMNS.index(f"{StatementEncoder.name}.{ESTIMATE}")
_LIKE = {
    "vector_bits": 0.1,
    "num_vector_registers": 0.1,
    "has_fma": 0.1,
    "l1_bytes": 1.0,
    "l2_bytes": 1.0,
    "threads": 1.0,
}
"""Devices are alike if none of these logarithms differs by more: the same vectors, caches of half or twice the size."""
_DEVICE_COLUMNS = tuple(_LIKE)
_HARDWARE = [_COLUMNS.index(f"{HardwareEncoder.name}.{name}") for name in _DEVICE_COLUMNS]
_TOLERANCES = np.array(list(_LIKE.values()), np.float32)
_FMA = _DEVICE_COLUMNS.index("has_fma")
_STEPS = 256
"""In one unit of a column: so finely they are told apart. Processors differ in the last bits, which must not decide."""
_MOST = 8.0
"""The largest logarithm of a factor, up or down."""


@dataclass(kw_only=True, eq=False)
class FactorTrees(CostModel):
    """The analytical model with a factor for the cycles of each statement, which trees have learned.

    The analytical model adds up the cycles of statements. So does this one, after it has multiplied each by exp(x),
    where x is the sum of trees over what is known of the statement, of the program as a whole and of the device. The
    score is minus the logarithm of the sum: without trees, the analytical model's. It learns to rank the programs of
    each subject (LambdaRank), from many tasks and devices. Each round boosts a small forest, whose trees see different
    rows and columns, and counts their mean: one tree would say more of the tasks that it saw than of others.
    """

    name: ClassVar[str] = "factor-trees"
    goes_on: ClassVar[bool] = True
    encoder: ClassVar[Encoder] = _ENCODER
    ranges: ClassVar[Mapping[str, Range]] = {
        **TREES,
        "num_rounds": COUNTS,
        "trees_in_round": COUNTS,
        "row_share": PART,
        "column_share": PART,
        "sharpness": POSITIVE,
        "grades": Range(0, 64, is_open=True),
        "num_partners": COUNTS,
        "trust": SHARE,
    }

    num_rounds: int = 80
    trees_in_round: int = 3
    learning_rate: float = 0.075
    max_depth: int = 6
    max_bins: int = 64
    min_child_weight: float = 1.0
    l2: float = 1.0
    row_share: float = 0.7
    """Of the statements, those that a tree is made from."""
    column_share: float = 0.3
    sharpness: float = 4.0
    """By what scores are multiplied where they are ranked: how sure a difference of 1 / sharpness is."""
    grades: float = 1.0
    """By what labels are multiplied before a program's gain is 2^label - 1: the more, the more the fastest count."""
    num_partners: int = 16
    """With how many others of its subject a program is compared."""
    trust: float = 0.25
    """By what the logarithms of factors are multiplied on a device like none that it has learned from."""
    num_threads: int = 1
    seed: int = 0

    forest_: Forest | None = field(default=None, init=False, repr=False)
    hardware_: NDArray[np.float32] | None = field(default=None, init=False, repr=False)
    """What the devices are that it has learned from, a row each."""

    @property
    def is_fitted(self) -> bool:
        return self.forest_ is not None

    def fit_examples(self, examples: Examples) -> None:
        statements = self._checked_statements(examples)
        # Both are set when all is learned: an interrupt leaves what was there before.
        self.forest_ = self._boosted(Forest.over(statements.rows), examples, statements, self.num_rounds)
        self.hardware_ = np.unique(statements.rows[:, _HARDWARE], axis=0)

    def fine_tune_examples(self, examples: Examples) -> None:
        """Half as many rounds more, on what those that there are get wrong of these programs."""
        assert self.forest_ is not None
        assert self.hardware_ is not None
        statements = self._checked_statements(examples)
        self.forest_ = self._boosted(self.forest_, examples, statements, -(-self.num_rounds // 2))
        self.hardware_ = np.unique(np.concatenate([self.hardware_, statements.rows[:, _HARDWARE]]), axis=0)

    def _checked_statements(self, examples: Examples) -> _Statements:
        if len(examples) == 0:
            raise UsageError("a cost model learns from at least one program, got no examples; measure some first")
        self._check_ranges()
        return _Statements.of_examples(examples)

    def _boosted(self, forest: Forest, examples: Examples, statements: _Statements, num_rounds: int) -> Forest:
        rank = RankInLists(self.grades * examples.labels, examples.tasks, self.seed, self.num_partners)
        objective = _of_factors(rank, statements, len(examples), self.sharpness)
        return forest.boosted(statements.rows, objective, self._parameters(), num_rounds)

    def _parameters(self) -> dict[str, Any]:
        return {
            "max_bin": self.max_bins,
            "max_depth": self.max_depth,
            "eta": self.learning_rate,
            "num_parallel_tree": self.trees_in_round,
            "subsample": self.row_share,
            "colsample_bytree": self.column_share,
            "min_child_weight": self.min_child_weight,
            "lambda": self.l2,
            "nthread": self.num_threads,
            "seed": self.seed,
        }

    def _score(self, values: NDArray[np.float32]) -> Floats:
        assert self.forest_ is not None
        statements = _Statements.of_values(values)
        logarithms = self.forest_.score(statements.rows) * self._trust(statements.rows)
        return score_of(statements.corrected(logarithms, len(values)))

    def _trust(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Of each row: 1 on a device that it knows, 0 where multiply-adds, or their absence, are new to it."""
        assert self.hardware_ is not None
        apart = np.abs(rows[:, np.newaxis, _HARDWARE] - self.hardware_) / _TOLERANCES
        is_known, is_of_a_kind = (apart <= 1).all(axis=2).any(axis=1), (apart[:, :, _FMA] <= 1).any(axis=1)
        return np.where(is_known, 1.0, np.where(is_of_a_kind, self.trust, 0.0)).astype(np.float32)

    def _state(self) -> dict[str, NDArray[Any]]:
        if self.forest_ is None or self.hardware_ is None:
            return {}
        return {
            "hardware": self.hardware_,
            "hardware_names": names_array(_DEVICE_COLUMNS),
            **self.forest_.to_arrays(_COLUMNS),
        }

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if not arrays:
            return
        self.hardware_ = _known_devices(arrays)
        self.forest_ = Forest.from_arrays(_with_names(arrays), len(_COLUMNS), self.num_threads, _COLUMNS)


def _with_names(arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    """The arrays of a file, with the names of the columns that trees look at; earlier files have numbers instead."""
    if NAMES in arrays:
        return arrays
    numbers = checked_columns(arrays[NUMBERS], len(_UNNAMED))
    return {**arrays, NAMES: names_array([_UNNAMED[number] for number in numbers])}


def _known_devices(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """A row for each device that the model of a file has learned from; numbers without names are ours."""
    names = names_of(arrays["hardware_names"]) if "hardware_names" in arrays else _DEVICE_COLUMNS
    hardware = arrays["hardware"].astype(np.float32)
    if hardware.ndim != 2 or hardware.shape[1] != len(names) or not np.isfinite(hardware).all():
        raise ValueError(f"devices are rows of {len(names)} numbers, got {hardware.shape}")
    return hardware[:, numbers_of(_DEVICE_COLUMNS, names)]


@dataclass(frozen=True, slots=True, eq=False)
class _Statements:
    """The statements of programs, a row each, with what is known of their programs and devices."""

    rows: NDArray[np.float32]
    cycles: Floats
    """By the analytical model."""
    programs: Integers
    """The program of each."""

    @staticmethod
    def of_values(values: NDArray[np.float32]) -> _Statements:
        """Of values[program, row, number]; programs of one sketch have the same rows."""
        _check_columns(values.shape[2])
        is_statement = (values[:, :, _ESTIMATE] > 0).any(axis=0)
        others = values[:, ~is_statement].sum(axis=1, keepdims=True)
        rows = np.empty((len(values), int(is_statement.sum()), values.shape[2] + len(_OWN_COLUMNS)), np.float32)
        np.add(values[:, is_statement], others, out=rows[:, :, : values.shape[2]])
        programs = np.repeat(np.arange(len(values)), rows.shape[1])
        return _Statements._of(rows.reshape(-1, rows.shape[2]), programs, len(values))

    @staticmethod
    def of_examples(examples: Examples) -> _Statements:
        _check_columns(examples.num_features)
        is_statement = examples.values[:, _ESTIMATE] > 0
        programs = np.repeat(np.arange(len(examples)), examples.num_statements)
        others = np.zeros((len(examples), examples.num_features), np.float32)
        np.add.at(others, programs[~is_statement], examples.values[~is_statement])
        programs = programs[is_statement]
        rows = np.empty((len(programs), examples.num_features + len(_OWN_COLUMNS)), np.float32)
        np.add(examples.values[is_statement], others[programs], out=rows[:, : examples.num_features])
        return _Statements._of(rows, programs, len(examples))

    @staticmethod
    def _of(rows: NDArray[np.float32], programs: Integers, num_programs: int) -> _Statements:
        """Of rows with room for the columns that say how much of its program a statement is."""
        cycles = np.exp2(rows[:, _ESTIMATE].astype(np.float64)) - 1
        total = np.maximum(np.bincount(programs, cycles, num_programs), np.finfo(np.float64).tiny)[programs]
        share = np.log2(np.maximum(cycles / total, 1e-6))
        counts = np.bincount(programs, minlength=num_programs)[programs]
        rows[:, -len(_OWN_COLUMNS) :] = np.stack([share, np.log2(1 + total), counts], axis=1)
        rows *= _STEPS
        np.rint(rows, out=rows)
        rows /= _STEPS
        return _Statements(rows, cycles, programs)

    def corrected(self, logarithms: NDArray[np.float32], num_programs: int) -> Floats:
        """The cycles of programs, with the logarithms of the factors of statements."""
        return np.bincount(self.programs, self.multiplied(logarithms), num_programs).astype(np.float64)

    def multiplied(self, logarithms: NDArray[np.float32]) -> Floats:
        """The cycles of statements times their factors."""
        found: Floats = self.cycles * np.exp(np.clip(logarithms.astype(np.float64), -_MOST, _MOST))
        return found


def _of_factors(
    objective: ProgramObjective, statements: _Statements, num_programs: int, sharpness: float
) -> StatementObjective:
    """An objective of programs as one of the logarithms of factors: each moves the score by its share of the cycles."""

    def of_statements(logarithms: NDArray[np.float32], _: Any) -> Derivatives:
        cycles = statements.multiplied(logarithms)
        total = np.maximum(np.bincount(statements.programs, cycles, num_programs), 1)
        first, second = objective(sharpness * score_of(total))
        share = sharpness * cycles / total[statements.programs]
        return -share * first[statements.programs], share**2 * second[statements.programs]

    return of_statements


def _check_columns(num_columns: int) -> None:
    if num_columns != len(_ENCODER.columns):
        raise UsageError(
            f"the columns of the encoder {_ENCODER.name} are what the cost model {FactorTrees.name} reads: "
            f"{len(_ENCODER.columns)} features, got {num_columns}; give it programs that this encoder has encoded"
        )
