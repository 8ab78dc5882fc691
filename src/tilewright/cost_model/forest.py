"""Boosted trees as a value: what cost models make of xgboost.

Of it only what has been stable for years is used: DMatrix, train with an objective, inplace_predict, and the JSON of a
model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.array_file import names_array, names_of
from tilewright.cost_model.tree_checks import check_trees
from tilewright.errors import UsageError

Floats = NDArray[np.float64]
NAMES, NUMBERS = "column_names", "columns"
"""How a file says which columns the trees look at: by names, where they have some, or by numbers."""

TreeObjective = Callable[[NDArray[np.float32], Any], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees over rows of numbers, of which they look at some columns; a row's score is the sum of what they give."""

    columns: NDArray[np.int64]
    """Those that varied where the trees began; where none did, trees begin with the next rows."""
    num_features: int
    booster: Any = None
    """None where no column varied: every score is 0."""

    @staticmethod
    def over(rows: NDArray[np.float32]) -> Forest:
        """One without trees, for rows like these."""
        return Forest(np.flatnonzero(np.ptp(rows, axis=0) > 0), int(rows.shape[1]))

    def boosted(
        self, rows: NDArray[np.float32], objective: TreeObjective, parameters: Mapping[str, Any], num_trees: int
    ) -> Forest:
        """This with more trees, which follow the derivatives of the objective."""
        columns = self.columns if len(self.columns) else Forest.over(rows).columns
        if len(columns) == 0:
            return self
        import xgboost

        matrix = xgboost.DMatrix(rows[:, columns], nthread=parameters["nthread"])
        settings = {"tree_method": "hist", "base_score": 0.0, "verbosity": 0} | dict(parameters)
        try:
            booster = xgboost.train(settings, matrix, num_trees, obj=objective, xgb_model=self.booster)
        except xgboost.core.XGBoostError as error:
            reason = str(error).splitlines()[0]
            raise UsageError(f"xgboost makes no trees of these options: {reason}; choose others") from error
        return Forest(columns, self.num_features, booster)

    def score(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """The score of each row."""
        self.check_features(rows.shape[1])
        if self.booster is None:
            return np.zeros(len(rows), np.float32)
        return self._margins(rows[:, self.columns])

    def check_features(self, num_features: int) -> None:
        """That rows have as many numbers as those that it has learned from."""
        if num_features != self.num_features:
            raise UsageError(
                f"the cost model has learned from {self.num_features} features, got {num_features}; fit it anew"
            )

    @property
    def num_nodes(self) -> int:
        """Of all trees."""
        if self.booster is None:
            return 0
        trees = json.loads(bytes(self.booster.save_raw("json")))["learner"]["gradient_booster"]["model"]["trees"]
        return sum(int(tree["tree_param"]["num_nodes"]) for tree in trees)

    def _margins(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        margins: NDArray[np.float32] = self.booster.inplace_predict(rows, predict_type="margin")
        return margins

    # --- the file ---

    def to_arrays(self, names: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
        """What `from_arrays` takes; `names` are those of all columns of the rows, if they have any."""
        arrays: dict[str, NDArray[Any]] = {NUMBERS: self.columns}
        if names:
            arrays = {NAMES: names_array([names[column] for column in self.columns])}
        if self.booster is not None:
            arrays["trees_json"] = np.frombuffer(self.booster.save_raw("json"), np.uint8)
            arrays["probe"] = self._probe()
        return arrays

    @staticmethod
    def from_arrays(
        arrays: Mapping[str, NDArray[Any]], num_features: int, num_threads: int, names: Sequence[str] = ()
    ) -> Forest:
        """That of a file, for rows of `num_features` columns; their names are those by which the file finds its own.

        ValueError, KeyError or TypeError where it is none.
        """
        if NAMES in arrays:
            columns = numbers_of(names_of(arrays[NAMES]), names)
        else:
            columns = checked_columns(arrays[NUMBERS], num_features)
        if "trees_json" not in arrays and len(columns) == 0:
            return Forest(columns, num_features)
        check_trees(arrays["trees_json"].tobytes(), len(columns))
        import xgboost

        booster = xgboost.Booster()
        booster.load_model(bytearray(arrays["trees_json"].tobytes()))
        booster.set_param({"nthread": num_threads})
        found = Forest(columns, num_features, booster)
        if not np.allclose(found._probe(), arrays["probe"], rtol=1e-5, atol=1e-6):
            raise UsageError(
                f"the trees of a cost model score as they did when saved, but xgboost {xgboost.__version__} reads them "
                f"otherwise; use the version that wrote them or a newer one, or fit the model anew"
            )
        return found

    def _probe(self) -> NDArray[np.float32]:
        """Scores of two made-up rows. An older xgboost can misread a newer one's trees without a word."""
        return self._margins(np.repeat(np.array([[0.0], [8.0]], np.float32), len(self.columns), axis=1))


def numbers_of(wanted: Sequence[str], names: Sequence[str]) -> NDArray[np.int64]:
    """Where the wanted columns are among those with names; UsageError where one is not."""
    known = {name: number for number, name in enumerate(names)}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise UsageError(
            f"a cost model finds the columns that it has learned from by name, and {shown(missing)} are none of the "
            f"{len(known)} that programs have; train the model again with this version"
        )
    return np.array([known[name] for name in wanted], np.int64)


def checked_columns(columns: NDArray[Any], num_features: int) -> NDArray[np.int64]:
    """Numbers of columns in a file; ValueError where they are none."""
    if columns.ndim != 1 or columns.dtype.kind != "i" or np.any((columns < 0) | (columns >= num_features)):
        raise ValueError(f"columns are numbers below {num_features}, got {columns.dtype} {list(columns.shape)}")
    return columns.astype(np.int64)
