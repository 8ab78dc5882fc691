"""Primitives as rows of numbers: what each says, next to one trace read the slow way, and other tools' logs."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.features.read_trace import read_trace
from tilewright.errors import UsageError
from tilewright.features import (
    NUM_TOKENS,
    Primitive,
    PrimitiveEncoder,
    PrimitiveReader,
    PublishedPrimitiveEncoder,
    primitives_of,
    token,
)
from tilewright.space import Sketch
from tilewright.testing.encoder_checks import sketches_of
from tilewright.testing.programs import FAMILIES


def rows_of(encoder: PrimitiveReader, values: NDArray[np.float32]) -> list[dict[str, float]]:
    """What each row says, without the numbers that are 0."""
    return [
        {name: float(value) for name, value in zip(encoder.columns, row, strict=True) if value != 0} for row in values
    ]


def close(row: dict[str, float]) -> object:
    return pytest.approx(row, rel=1e-6)


def slow_rows(sketch: Sketch, row: tuple[int, ...]) -> list[dict[str, float]]:
    steps = read_trace(sketch.task, sketch.trace(row))
    found = []
    for place, (kind, names, numbers) in enumerate(steps):
        told = {"mask": 1.0, f"is_{kind}": 1.0}
        told |= {"from_first": math.log2(1 + place), "from_last": math.log2(len(steps) - place)}
        told |= {f"token{k}": float(token(name)) for k, name in enumerate(names)}
        told |= {f"number{k}": math.log2(2 + number) for k, number in enumerate(numbers)}
        found.append({name: value for name, value in told.items() if value != 0})
    return found or [{}]


def slow_published_rows(sketch: Sketch, row: tuple[int, ...], length: int) -> list[dict[str, float]]:
    found: list[dict[str, float]] = []
    seen: list[str] = []
    for kind, names, numbers in read_trace(sketch.task, sketch.trace(row))[:length]:
        seen += [name for k, name in enumerate(names) if name not in seen and name not in names[:k]]
        parameters = [*(1 + seen.index(name) for name in names), *numbers][:11]
        told = {f"is_{kind}": 1.0} | {f"parameter{k}": float(value) for k, value in enumerate(parameters)}
        found.append({name: value for name, value in told.items() if value != 0})
    return [*found, *({} for _ in range(length - len(found)))]


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_say_what_the_trace_says(family: str) -> None:
    whole, published = PrimitiveEncoder(), PublishedPrimitiveEncoder()
    for sketch in sketches_of(family, seed=2):
        population = sketch.sample(np.random.default_rng(2), 4)
        for candidate, values in zip(population, whole.encode(population), strict=True):
            assert rows_of(whole, values) == list(map(close, slow_rows(sketch, candidate.row)))
        for candidate, values in zip(population, published.encode(population), strict=True):
            assert rows_of(published, values) == slow_published_rows(sketch, candidate.row, 25)


def test_a_length_cuts_or_fills_up_and_the_mask_tells() -> None:
    (sketch, *_) = sketches_of("gemm")
    population = sketch.sample(np.random.default_rng(0), 3)
    whole = PrimitiveEncoder().encode(population)
    cut, filled = (PrimitiveEncoder(length=length).encode(population) for length in (4, 100))
    np.testing.assert_array_equal(cut, whole[:, :4])
    np.testing.assert_array_equal(filled[:, : whole.shape[1]], whole)
    assert not filled[:, whole.shape[1] :].any()
    assert (filled[:, :, 0].sum(axis=1) == whole.shape[1]).all()


def test_steps_of_another_tool_are_read_as_they_are_written() -> None:
    """A split of Ansor's, a knob of AutoTVM's with a factor that is left open, and something never seen."""
    sequence = (
        Primitive("SP", ("3", "0"), (512, np.array([4, 8]), np.array([16, 0]))),
        Primitive("sp", ("tile_f",), (-1, np.array([2, 4]))),
        Primitive("XYZ", ("\ud800",), ()),
    )
    encoder = PrimitiveEncoder()
    first, second = (rows_of(encoder, values) for values in encoder.encode_primitives(sequence, 2))
    assert first[0] == close(
        {"mask": 1, "is_SP": 1, "from_last": math.log2(3), "token0": token("3"), "token1": token("0")}
        | {"number0": math.log2(514), "number1": math.log2(6), "number2": math.log2(18)}
    )
    assert second[0]["number2"] == 1  # the number 0 is not nothing
    assert second[1]["number0"] == pytest.approx(-math.log2(3))
    assert second[2]["is_other"] == 1
    published = PublishedPrimitiveEncoder(length=3)
    first, second = (rows_of(published, values) for values in published.encode_primitives(sequence, 2))
    assert second[0] == {"is_SP": 1, "parameter0": 3, "parameter2": 512, "parameter3": 8}
    assert first[1] == {"is_sp": 1, "parameter0": 1, "parameter1": -1, "parameter2": 2}


def test_a_program_without_primitives_has_a_row_that_is_masked() -> None:
    assert not PrimitiveEncoder().encode_primitives((), 2).any()
    assert PrimitiveEncoder().encode_primitives((), 2).shape[:2] == (2, 1)


def test_nothing_of_our_own_programs_is_cut_off() -> None:
    encoder = PrimitiveEncoder()
    for family in ("conv2d", "conv_transpose", "batched_matmul"):
        for sketch in sketches_of(family, seed=3):
            for primitive in primitives_of(sketch.sample(np.random.default_rng(0), 1)):
                assert len(primitive.names) <= encoder.num_names
                assert len(primitive.numbers) <= encoder.num_numbers


def test_names_that_many_programs_use_have_tokens_of_their_own() -> None:
    axes = [f"{kind}{number}" for kind in "sr" for number in range(6)]
    parts = [f"{axis}.{level}" for axis in axes for level in range(4)]
    stages = [f"{kind}{number}" for kind in "SI" for number in range(8)]
    copies = [f"{stage}.{kind}" for stage in stages[:4] for kind in ("write", "rf")]
    packed = [f"I{number}.{kind}" for number in range(4) for kind in ("pack", "read")]
    fused = [f"s{b}.0@s{a}.0" for a, b in itertools.permutations(range(4), 2)]
    names = [*axes, *parts, *stages, *copies, *packed, *fused, *map(str, range(40))]
    assert len(set(map(token, names))) == len(names)
    assert all(0 < token(name) < NUM_TOKENS for name in names)


def test_a_token_is_the_same_in_another_process() -> None:
    code = "from tilewright.features import token; print(token('s0.1'))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(told) == token("s0.1")


def test_options_are_part_of_what_an_encoder_is() -> None:
    assert PrimitiveEncoder(length=25) == PrimitiveEncoder(length=25) != PrimitiveEncoder()
    assert len({PrimitiveEncoder(length=25), PrimitiveEncoder(length=25), PrimitiveEncoder(length=40)}) == 2
    assert PrimitiveEncoder() != PublishedPrimitiveEncoder()


@pytest.mark.parametrize("length", [0, -1, 2.5, True, "25", 10_001, 10**23])
def test_a_length_that_is_none_is_refused(length: object) -> None:
    with pytest.raises(UsageError, match="length of an encoder of primitives is a whole number of at least 1"):
        PrimitiveEncoder(length=length)  # type: ignore[arg-type]
