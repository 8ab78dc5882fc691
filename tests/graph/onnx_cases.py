"""ONNX's own backend cases, and what becomes of each when it is imported, compiled and run.

`python -m tests.graph.onnx_cases` runs all of them, prints how many there are of each outcome, and writes
`onnx_cases.txt` anew: the cases that are not computed by kernels alone.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import DATA_DIR, load_model_tests
from onnx.backend.test.runner import Runner

from tilewright import backend
from tilewright.errors import TilewrightError
from tilewright.network import partition_network
from tilewright.partition import Fallback

LISTING = Path(__file__).with_suffix(".txt")
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")

# The cases' own operators round 16-bit floats after each step, kernels only what they store: two units in the last
# place, which is what ONNX's runner allows bfloat16.
_FLOAT16_RTOL = 2 * 2.0**-10
_RANDOM = ("Bernoulli", "RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Multinomial")


class Outcome(StrEnum):
    """What a case is computed by."""

    KERNELS = "kernels"
    NO_KERNEL = "no kernel needed"
    FALLBACK = "fallback"
    REFUSED = "refused"


class Result(NamedTuple):
    """The outcome, and the operators that fell back or the error's name."""

    outcome: Outcome
    reason: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}" if self.reason else str(self.outcome)


@cache
def cases(kind: str) -> list[TestCase]:
    """The cases of a kind, in the order of their names; the models of kind "real" are the light ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of the arithmetic that gives the expected outputs
        return sorted(load_model_tests(kind=kind), key=lambda case: case.name)


def run(case: TestCase, schedule: str = "naive") -> Result:
    """Run a case. Raises AssertionError if it gives another answer than ONNX says."""
    model = case.model or onnx.load(_model_path(case))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fallbacks, and NumPy's of divisions by zero that the cases are about
        try:
            prepared = backend.prepare(model, schedule=schedule, threads=1)
            answers = [(prepared.run(inputs), expected) for inputs, expected in _data_sets(case, model)]
        except TilewrightError as error:
            return Result(Outcome.REFUSED, type(error).__name__)
    is_random = any(node.op_type in _RANDOM for node in model.graph.node)
    for actual, expected in answers:
        _assert_outputs(list(actual), expected, case, is_random)
    return _result(prepared)


def _result(prepared: backend.BackendRep) -> Result:
    models = prepared.compiled_models
    fallbacks = dict.fromkeys(call.node.op for model in models for call in model.fallbacks)
    if fallbacks:
        return Result(Outcome.FALLBACK, ", ".join(fallbacks))
    return Result(Outcome.KERNELS if any(model.kernels for model in models) else Outcome.NO_KERNEL, "")


def _assert_outputs(actual: Sequence[Any], expected: Sequence[Any], case: TestCase, is_random: bool) -> None:
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        if isinstance(e, list):
            assert isinstance(a, list), f"{type(a).__name__}, expected a sequence"
            _assert_outputs(a, e, case, is_random)
        elif is_random:
            assert (a.shape, a.dtype) == (e.shape, e.dtype)
        else:
            is_half = e is not None and e.dtype == np.float16
            Runner.assert_similar_outputs([e], [a], max(case.rtol, _FLOAT16_RTOL if is_half else 0.0), case.atol)


def _model_path(case: TestCase) -> Path:
    if case.model_dir is not None:
        return Path(case.model_dir, "model.onnx")
    return Path(DATA_DIR, "light", Path(case.url).name)


def _data_sets(case: TestCase, model: onnx.ModelProto) -> Iterator[tuple[list[Any], list[Any]]]:
    if case.data_sets is not None:
        for inputs, expected in case.data_sets:
            yield [_array(x) for x in inputs], [_array(x) for x in expected]
    elif case.model_dir is not None:
        for folder in sorted(Path(case.model_dir).glob("test_data_set*")):
            yield _read(folder, "input", model.graph.input), _read(folder, "output", model.graph.output)
    else:
        constants = {tensor.name for tensor in model.graph.initializer}
        inputs = [Runner.generate_dummy_data(x) for x in model.graph.input if x.name not in constants]
        path = _model_path(case)
        yield inputs, [onnx.numpy_helper.to_array(onnx.load_tensor(path.with_name(f"{path.stem}_output_0.pb")))]


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _read(folder: Path, what: str, values: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    num_files = len(list(folder.glob(f"{what}_*.pb")))
    return [_read_value(folder / f"{what}_{i}.pb", value) for i, value in zip(range(num_files), values, strict=False)]


def _read_value(path: Path, value: onnx.ValueInfoProto) -> Any:
    if value.type.HasField("sequence_type"):
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(path.read_bytes()))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


@cache
def listed() -> dict[tuple[str, str], str]:
    """The results of the cases that are not computed by kernels alone, by kind and name."""
    found = {}
    for line in LISTING.read_text().splitlines():
        case, result = line.split(": ", 1)
        kind, name = case.split("/")
        found[kind, name] = result
    return found


def counts(results: dict[tuple[str, str], str]) -> dict[str, Counter[str]]:
    """How many cases of each kind have each outcome, given the results of those not computed by kernels alone."""
    table = {kind: Counter({Outcome.KERNELS.value: len(cases(kind))}) for kind in KINDS}
    for (kind, _), result in results.items():
        table[kind][result.split(": ")[0]] += 1
        table[kind][Outcome.KERNELS.value] -= 1
    return table


def waits_for_constants(case: TestCase) -> bool:
    """Whether the case falls back only because shapes, axes or scales are inputs.

    That is so where no node falls back once such inputs are constants, and others remain.
    """
    model = case.model or onnx.load(_model_path(case))
    given, _ = next(_data_sets(case, model))
    values = dict(zip([value.name for value in model.graph.input], given, strict=False))
    constants = {name: np.asarray(x) for name, x in values.items() if _is_number(x) and x.ndim <= 1}
    if not constants or _falls_back(model, values, constants):
        return False
    for name in list(constants):
        fewer = {other: array for other, array in constants.items() if other != name}
        constants = constants if _falls_back(model, values, fewer) else fewer
    return len(constants) < len(values)


def _is_number(x: Any) -> bool:
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biuf"


def _falls_back(model: onnx.ModelProto, values: dict[str, Any], constants: dict[str, np.ndarray]) -> bool:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.input[:]
    changed.graph.input.extend(value for value in model.graph.input if value.name not in constants)
    changed.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    shapes = {name: np.shape(x) for name, x in values.items() if name not in constants and _is_number(x)}
    try:
        parts = partition_network(changed, shapes).parts
    except TilewrightError:
        return True
    return any(isinstance(part, Fallback) for part in parts)


def _run_listed(case: tuple[str, int]) -> tuple[str, str, Result]:
    kind, index = case
    found = cases(kind)[index]
    return kind, found.name, run(found, "default" if kind == "real" else "naive")


def _main() -> None:
    wanted = [(kind, index) for kind in KINDS for index in range(len(cases(kind)))]
    with Pool() as pool:
        found = pool.map(_run_listed, wanted, chunksize=1)
    results = {(kind, name): str(result) for kind, name, result in found if result.outcome is not Outcome.KERNELS}
    LISTING.write_text("".join(f"{kind}/{name}: {result}\n" for (kind, name), result in results.items()))
    for kind, numbers in counts(results).items():
        print(f"{kind:18}", *(f"{numbers[outcome]:6} {outcome}" for outcome in Outcome))
    fallbacks = [case for case in cases("node") if results.get(("node", case.name), "").startswith(Outcome.FALLBACK)]
    num_waiting = sum(map(waits_for_constants, fallbacks))
    print(f"node cases that fall back only because shapes, axes or scales are inputs: {num_waiting}")


if __name__ == "__main__":
    _main()
