"""The interface of a cost model, and its file: arrays with a JSON header in one .npz, never a pickle."""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from reprlib import repr as shown
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.arguments import Range, replaceable_file
from tilewright.cost_model.array_file import NOT_ARRAYS, json_of, plain, read_members, text_array
from tilewright.cost_model.dataset import Dataset
from tilewright.cost_model.examples import Examples
from tilewright.cost_model.option_ranges import check_ranges
from tilewright.errors import TilewrightError, UsageError
from tilewright.features import Encoder
from tilewright.space import Population

FORMAT = "tilewright-cost-model"
FORMAT_VERSION = 1
_HEADER = "header"
MAX_BYTES = 1 << 28
"""Of a file: what claims to be larger is not read."""
_AT_ONCE = 4096
"""Programs that are scored together, so that copies of their rows stay small."""

_Model = TypeVar("_Model", bound="CostModel")


@dataclasses.dataclass(kw_only=True, eq=False)
class CostModel(ABC):
    """Ranks the programs of a population. A model is a dataclass: its options are the fields that `__init__` takes.

    The constructor stores options and does no work. What is learned ends in `_` and is not in `__init__`. Scores are
    higher for faster programs, and comparable within one task. A model reads arrays, which its encoder makes.
    """

    name: ClassVar[str]
    """What the model is called on the command line and in files."""
    ranges: ClassVar[Mapping[str, Range]] = {}
    """What those of its options may be that are numbers."""

    goes_on: ClassVar[bool] = False
    """Whether it can be fine-tuned: whether it has `fine_tune_examples`."""

    tasks_: tuple[str, ...] = dataclasses.field(default=(), init=False, repr=False)
    """The hashes of the tasks that it learned from, if whoever trained it says so: what it is not to be tested on."""

    @property
    @abstractmethod
    def encoder(self) -> Encoder:
        """What it reads of a program: of the class, or as the options say."""

    @property
    @abstractmethod
    def is_fitted(self) -> bool:
        """Whether `predict` can be called."""

    @property
    def verified_share(self) -> float:
        """Of the programs that a search looks at, those that it scores: the ones that the analytical model prefers."""
        return 1.0

    def fit(self, dataset: Dataset) -> None:
        """Learn from scratch."""
        self.fit_examples(dataset.encoded(self.encoder))

    def update(self, dataset: Dataset) -> None:
        """Learn from all data so far, of which an earlier call saw a part; cheaper than `fit` where a model can."""
        self.update_examples(dataset.encoded(self.encoder))

    def fine_tune(self, dataset: Dataset) -> None:
        """Go on from what was learned, with programs that may have nothing in common with those of before."""
        self._check_fitted()
        self._check_goes_on()
        self.fine_tune_examples(dataset.encoded(self.encoder))

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

    def fine_tune_examples(self, examples: Examples) -> None:
        """`fine_tune`, of programs that are encoded; of a model that `goes_on`."""
        raise NotImplementedError

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

    def score_examples(self, examples: Examples) -> NDArray[np.float64]:
        """A score for each of the programs that are encoded; those with as many rows are scored together."""
        scores = np.empty(len(examples))
        for count in np.unique(examples.num_statements):
            own = np.flatnonzero(examples.num_statements == count)
            for begin in range(0, len(own), _AT_ONCE):
                some = own[begin : begin + _AT_ONCE]
                scores[some] = self.score(examples.padded(some)[0])
        return scores

    def on_device(self: _Model, device: str) -> _Model:
        """The model as it ranks programs of the device of that name; another one where it knows devices by name."""
        return self

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise UsageError(f"the cost model {self.name} has learned nothing yet; call fit, or load a model")

    def _check_goes_on(self) -> None:
        if not self.goes_on:
            raise UsageError(
                f"the cost model {self.name} learns all at once and cannot be fine-tuned; train it on old and new "
                "programs together, or train a residual over it"
            )

    @property
    def options(self) -> dict[str, Any]:
        """The options of the constructor, as they are now."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.init}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write options and what was learned. A file that is there already is replaced in one step."""
        header = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "model": self.name,
            "options": self.options,
            "tasks": self.tasks_,
        }
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
        try:
            model = cls(**cls.checked_options(header["options"]))
        except UsageError as error:
            raise UsageError(
                f"{os.fspath(path)} has options that this version does not know: {error}; save the model again"
            ) from error
        model.tasks_ = tuple(header["tasks"])
        try:
            model._restore(arrays)
        except UsageError as error:
            raise UsageError(f"{os.fspath(path)} cannot be used: {error}") from error
        except (*NOT_ARRAYS, TypeError, IndexError, AttributeError) as error:
            raise UsageError(
                f"{os.fspath(path)} is not the file of a cost model: what {cls.name} has learned is not in it "
                f"({error}); save the model again"
            ) from error
        return model

    @classmethod
    def checked_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options for the constructor that came from outside: of its names, and of the kinds of its defaults."""
        known = cls().options
        given = {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}
        unknown = [name for name in options if name not in known]
        if unknown:
            raise UsageError(
                f"the options of the cost model {cls.name} are {', '.join(known) or 'none'}; got {', '.join(unknown)}"
            )
        for name, value in given.items():
            if not _is_like(value, known[name]):
                raise UsageError(
                    f"the option {name} of the cost model {cls.name} is like {known[name]!r}, which is the default, "
                    f"got {shown(value)}"
                )
        check_ranges(cls.name, cls.ranges, given)
        return given

    def _check_ranges(self) -> None:
        """Before it learns: options that were set in Python are not looked at before."""
        check_ranges(self.name, self.ranges, self.options)

    @abstractmethod
    def _score(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        """`score` of a fitted model, for at least one candidate."""

    @abstractmethod
    def _state(self) -> dict[str, NDArray[Any]]:
        """What was learned, as arrays."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `_state` gave."""


def _is_like(value: object, default: object) -> bool:
    """Whether a value may stand for the default of an option; one that may be None says nothing of its kind."""
    if default is None:
        return True
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(default, tuple):
        return isinstance(value, list | tuple)
    return type(value) is type(default)


def write_arrays(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    max_bytes: int | None = None,
) -> None:
    """Write a .npz with a JSON header in one step: what is there is replaced by all of it, or stays.

    What is larger than `max_bytes`, or a model, would not be read again, and is not written.
    """
    most = max_bytes or MAX_BYTES
    replaced = replaceable_file("the file of the model", path)
    text = json.dumps(header, default=plain)
    beside = replaced.with_name(f".{secrets.token_hex(8)}.partial")  # of this writer alone: there may be another
    try:
        with open(beside, "xb") as file:
            np.savez(file, allow_pickle=False, **{_HEADER: text_array(text), **arrays})
        num_bytes = beside.stat().st_size
        if num_bytes > most:
            raise UsageError(
                f"a model of at most {most} bytes is read again from its file, got {num_bytes}; what was at "
                f"{os.fspath(path)} before is unchanged: train a smaller one"
            )
        beside.replace(replaced)
    except OSError as error:
        raise TilewrightError(
            f"the model could not be written to {os.fspath(path)}: {error.strerror or error}; what was there before is "
            "unchanged"
        ) from error
    finally:
        with suppress(OSError):  # it has its name by now
            beside.unlink()


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header, which has a model, options and tasks, and the arrays of a cost model's file."""
    header, arrays = read_arrays(path, "a cost model", FORMAT, FORMAT_VERSION, "save the model again")
    header.setdefault("tasks", [])
    for name, kind in (("model", str), ("options", dict), ("tasks", list)):
        if not isinstance(header.get(name), kind):
            raise UsageError(
                f"{os.fspath(path)} is not the file of a cost model: its header has {shown(header.get(name))} as "
                f"{name}; save the model again"
            )
    header["tasks"] = [str(task) for task in header["tasks"]]
    return header, arrays


def read_arrays(
    path: str | os.PathLike[str],
    kind: str,
    format_name: str,
    version: int,
    remedy: str,
    max_bytes: int | None = None,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays that `write_arrays` wrote, which have to be of that format."""
    what, most = os.fspath(path), max_bytes or MAX_BYTES
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # to open a pipe would be to wait for its writer
            raise UsageError(f"{kind} is read from a file, but {what} is a device or a pipe; name a file")
        with open(path, "rb") as file:
            num_bytes = os.fstat(file.fileno()).st_size
            if num_bytes > most:
                raise ValueError(f"it holds {num_bytes} bytes, and at most {most} are read")
            content = file.read(num_bytes)
        arrays = {name: array.copy() for name, array in read_members(content, most).items()}
        header: dict[str, Any] = json_of(arrays.pop(_HEADER))
        if not isinstance(header, dict):
            raise ValueError(f"its header is {shown(header)}")
    except FileNotFoundError:
        raise UsageError(f"{kind} is read from a file, but {what} is not there; check the path") from None
    except OSError as error:
        raise UsageError(f"{kind} is read from a file, but {what} cannot be read: {error.strerror}") from error
    except NOT_ARRAYS as error:
        raise UsageError(f"{what} is not the file of {kind}: {error}; {remedy}") from error
    if header.get("format") != format_name or header.get("version") != version:
        raise UsageError(
            f"the file of {kind} has format {format_name} version {version}, got {header.get('format')} "
            f"version {header.get('version')} in {what}; {remedy} with this version"
        )
    return header, arrays
