"""The interface of a cost model, and its file: arrays with a JSON header in one .npz, never a pickle."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.dataset import Dataset
from tilewright.cost_model.examples import Examples
from tilewright.errors import UsageError
from tilewright.features import Encoder
from tilewright.space import Population

FORMAT = "tilewright-cost-model"
FORMAT_VERSION = 1
_HEADER = "header"
_MAX_BYTES = 1 << 30
"""More than any model has."""
_BROKEN = (
    ValueError, KeyError, EOFError, MemoryError, NotImplementedError, RecursionError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading a file that is none of ours can raise; MemoryError where an array claims to be larger than all."""

_Model = TypeVar("_Model", bound="CostModel")


@dataclasses.dataclass(kw_only=True, eq=False)
class CostModel(ABC):
    """Ranks the programs of a population. A model is a dataclass: its options are the fields that `__init__` takes.

    The constructor stores options and does no work. What is learned ends in `_` and is not in `__init__`. Scores are
    higher for faster programs, and comparable within one task. A model reads arrays, which its encoder makes.
    """

    name: ClassVar[str]
    """What the model is called on the command line and in files."""

    @property
    @abstractmethod
    def encoder(self) -> Encoder:
        """What it reads of a program: of the class, or as the options say."""

    @property
    @abstractmethod
    def is_fitted(self) -> bool:
        """Whether `predict` can be called."""

    def fit(self, dataset: Dataset) -> None:
        """Learn from scratch."""
        self.fit_examples(dataset.encoded(self.encoder))

    def update(self, dataset: Dataset) -> None:
        """Learn from all data so far, of which an earlier call saw a part; cheaper than `fit` where a model can."""
        self.update_examples(dataset.encoded(self.encoder))

    def predict(self, population: Population) -> NDArray[np.float64]:
        """A score for each candidate."""
        self._check_fitted()  # before the work of encoding
        if len(population) == 0:
            return np.zeros(0)
        return self.score(self.encoder.encode(population))

    @abstractmethod
    def fit_examples(self, examples: Examples) -> None:
        """`fit`, of programs that are encoded."""

    def update_examples(self, examples: Examples) -> None:
        """`update`, of programs that are encoded."""
        self.fit_examples(examples)

    def score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        """A score for each candidate, from what the encoder gives: values[candidate, row, number]."""
        if values.ndim != 3:
            raise UsageError(
                f"encoded programs are [candidate, row, number], got the shape {values.shape}; "
                f"a single candidate is values[np.newaxis]"
            )
        self._check_fitted()
        if len(values) == 0:
            return np.zeros(0)
        return self._score(values)

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise UsageError(f"the cost model {self.name} has learned nothing yet; call fit, or load a model")

    @property
    def options(self) -> dict[str, Any]:
        """The options of the constructor, as they are now."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.init}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write options and what was learned. A file that is there already is replaced in one step."""
        header = {"format": FORMAT, "version": FORMAT_VERSION, "model": self.name, "options": self.options}
        write_arrays(path, header, self._state())

    @classmethod
    def load(cls: type[_Model], path: str | os.PathLike[str]) -> _Model:
        """The model that `save` wrote to `path`."""
        header, arrays = read_file(path)
        if header["model"] != cls.name:
            raise UsageError(
                f"{os.fspath(path)} holds the cost model {header['model']}, not {cls.name}; "
                f"tilewright.cost_model.load reads either"
            )
        known = cls().options
        unknown = [option for option in header["options"] if option not in known]
        if unknown:
            raise UsageError(
                f"the options of the cost model {cls.name} are {', '.join(known)}; got {', '.join(unknown)} in "
                f"{os.fspath(path)}; read it with the version that wrote it, or train the model again"
            )
        model = cls(**header["options"])
        model._restore(arrays)
        return model

    @abstractmethod
    def _score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        """`score` of a fitted model, for at least one candidate."""

    @abstractmethod
    def _state(self) -> dict[str, NDArray[Any]]:
        """What was learned, as arrays."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `_state` gave."""


def text_array(text: str) -> NDArray[np.uint8]:
    """Text as bytes that fit into a .npz."""
    return np.frombuffer(text.encode(), np.uint8)


def write_arrays(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a .npz with a JSON header in one step: what is there is replaced by all of it, or stays."""
    partial = Path(f"{os.fspath(path)}.partial")
    with open(partial, "wb") as file:
        np.savez(file, allow_pickle=False, **{_HEADER: text_array(json.dumps(header)), **arrays})
    partial.replace(path)


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a cost model's file."""
    header, arrays = read_arrays(path, "a cost model", FORMAT, FORMAT_VERSION, "save the model again")
    if not isinstance(header.get("model"), str) or not isinstance(header.get("options"), dict):
        raise UsageError(
            f"the file of a cost model says its name and options, got {sorted(header)} in {os.fspath(path)}; "
            "save the model again"
        )
    return header, arrays


def read_arrays(
    path: str | os.PathLike[str], kind: str, format_name: str, version: int, remedy: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays that `write_arrays` wrote, which have to be of that format."""
    what = os.fspath(path)
    try:
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                raise zipfile.BadZipFile("it is not a .npz")
            with zipfile.ZipFile(file) as archive:
                num_bytes = sum(entry.file_size for entry in archive.infolist())
            if num_bytes > _MAX_BYTES:
                raise ValueError(f"it holds {num_bytes} bytes, and at most {_MAX_BYTES} are read")
            file.seek(0)
            with np.load(file, allow_pickle=False) as members:
                arrays = {name: members[name] for name in members.files}
        header = json.loads(arrays.pop(_HEADER).tobytes())
    except FileNotFoundError:
        raise UsageError(f"{kind} is read from a file, but {what} is not there; check the path") from None
    except _BROKEN as error:
        raise UsageError(f"{what} is not the file of {kind}: {error}; {remedy}") from error
    if not isinstance(header, dict):
        raise UsageError(f"{what} is not the file of {kind}: its header is no JSON object; {remedy}")
    if header.get("format") != format_name or header.get("version") != version:
        raise UsageError(
            f"the file of {kind} has format {format_name} version {version}, got {header.get('format')} "
            f"version {header.get('version')} in {what}; {remedy} with this version"
        )
    return header, arrays
