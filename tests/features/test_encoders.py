"""The encoders of the package keep the promises of the interface, and say what they should."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tilewright.cost_model.analytical import AnalyticalModel, score_schedule
from tilewright.errors import UsageError
from tilewright.features import (
    FEATURE_NAMES,
    HARDWARE_NAMES,
    ChoicesEncoder,
    Encoder,
    EstimateEncoder,
    FlatPrimitiveEncoder,
    Hardware,
    HardwareEncoder,
    HierarchyEncoder,
    JoinedEncoder,
    LoopTreeEncoder,
    PrimitiveEncoder,
    PublishedPrimitiveEncoder,
    PublishedStatementEncoder,
    StatementEncoder,
    create_encoder,
    encoder_from_json,
    encoder_names,
    encoder_to_json,
    hardware_of,
)
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target
from tilewright.testing.encoder_checks import OPTIONS, EncoderChecks, sketches_of


class TestStatementEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return StatementEncoder()


class TestPublishedStatementEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return PublishedStatementEncoder()

    def test_it_has_ansors_columns_of_a_statement_and_none_of_the_machine(self) -> None:
        population = sketches_of("gemm")[0].sample(np.random.default_rng(0), 4)
        names = self.make().columns
        # 16 kinds of operations, 3 x 11 of annotated loops, 5 x 18 of buffers, 10 intensities, 4 of memory, 3 of loops
        assert len(names) == 16 + 33 + 90 + 10 + 4 + 3
        assert not [name for name in names if name.endswith("_cycles") or "register" in name]
        whole = StatementEncoder().encode(population)
        own = self.make().encode(population)
        for number, name in enumerate(names):
            np.testing.assert_array_equal(own[:, :, number], whole[:, :, FEATURE_NAMES.index(name)])


class TestEstimateEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return EstimateEncoder()


class TestChoicesEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return ChoicesEncoder()


class TestPrimitiveEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return PrimitiveEncoder()


class TestPrimitiveEncoderOfOneLength(EncoderChecks):
    def make(self) -> Encoder:
        return PrimitiveEncoder(length=7, num_names=3, num_numbers=1)


class TestPublishedPrimitiveEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return PublishedPrimitiveEncoder()


class TestFlatPrimitiveEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return FlatPrimitiveEncoder()


class TestLoopTreeEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return LoopTreeEncoder()


class TestHierarchyEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return HierarchyEncoder()


class TestHardwareEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return HardwareEncoder()


class TestJoinedEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return create_encoder("estimate+hardware")


def test_a_device_is_told_by_its_numbers() -> None:
    text = "llvm -mcpu=haswell -num-cores=4 -l1d=32K -l2=256K -l3=6M -core=clock_hz:2e9"
    numbers = Hardware.from_target(Target.parse(text), threads=3).numbers
    assert list(numbers) == list(HARDWARE_NAMES)
    expected: dict[str, float] = {
        "vector_bits": 256,
        "num_vector_registers": 16,
        "has_fma": 1,
        "threads": 3,
        "l3_bytes": 6 << 20,
    }
    expected |= {"clock_hz": 2e9, "flops_per_cycle": 2 * 8 * 2}
    assert {name: numbers[name] for name in expected} == expected


def test_devices_differ_in_their_row_alone() -> None:
    task = sketches_of("gemm")[0].task
    rows = []
    for text in ("llvm -mcpu=haswell", "llvm -mcpu=haswell -l2=1M", "llvm -mcpu=nehalem"):
        population = derive(task, SpaceOptions(Target.parse(text)))[0].sample(np.random.default_rng(0), 2)
        values = HardwareEncoder().encode(population)
        np.testing.assert_array_equal(values[0], values[1])
        np.testing.assert_allclose(values[0, 0], np.log2(1 + np.array(list(hardware_of(population).numbers.values()))))
        rows.append(values[0, 0])
    changed = [name for name, a, b in zip(HARDWARE_NAMES, rows[0], rows[1], strict=True) if a != b]
    assert changed == ["l2_bytes"]
    assert not np.array_equal(rows[0], rows[2])


def test_joined_rows_have_columns_of_their_own() -> None:
    population = sketches_of("softmax")[0].sample(np.random.default_rng(0), 4)
    parts = StatementEncoder(), HardwareEncoder(), ChoicesEncoder()
    joined = JoinedEncoder(parts).encode(population)
    row = column = 0
    for part in parts:
        own = part.encode(population)
        rows, columns = slice(row, row + own.shape[1]), slice(column, column + own.shape[2])
        np.testing.assert_array_equal(joined[:, rows, columns], own)
        joined[:, rows, columns] = 0
        row, column = rows.stop, columns.stop
    assert joined.shape[1:] == (row, column)
    assert not joined.any()


@pytest.mark.parametrize("name", [*encoder_names(), "hardware+statements+primitives"])
def test_an_encoder_goes_through_json(name: str) -> None:
    encoder = create_encoder(name)
    assert encoder_from_json(json.loads(json.dumps(encoder_to_json(encoder)))) == encoder


def test_an_encoder_is_joined_once() -> None:
    """Its columns would have their names twice, and a model of them would not come back from its file."""
    with pytest.raises(UsageError, match="differ from one another, got estimate twice; give it once"):
        create_encoder("estimate+hardware+estimate")


def test_columns_of_two_encoders_of_one_name_have_names_of_their_own() -> None:
    joined = JoinedEncoder((PrimitiveEncoder(), PrimitiveEncoder(length=3), HardwareEncoder()))
    columns = joined.columns
    assert len(set(columns)) == len(columns)
    assert (columns[0], columns[69], columns[138]) == ("primitives.mask", "primitives1.mask", "hardware.vector_bits")


@pytest.mark.parametrize("name", encoder_names())
def test_columns_have_names_of_their_own(name: str) -> None:
    columns = create_encoder(name).columns
    assert len(set(columns)) == len(columns)


def test_options_go_through_json() -> None:
    encoder = JoinedEncoder((PrimitiveEncoder(length=9, num_names=2), HardwareEncoder()))
    assert encoder_from_json(json.loads(json.dumps(encoder_to_json(encoder)))) == encoder


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (None, "has a name and options"),
        ({"name": "primitives"}, "has a name and options"),
        ({"name": "magic", "options": {}}, "an encoder is one of statements, .* got 'magic'"),
        ({"name": ["primitives"], "options": {}}, "an encoder is one of"),
        ({"name": "hardware", "options": {"name": "x"}}, "the options of the encoder hardware are none; got name"),
        ({"name": "primitives", "options": {"length": [1]}}, "length of an encoder of primitives"),
        ({"name": "primitives", "options": {"depth": 1}}, "are length, num_names, num_numbers; got depth"),
        ({"joined": []}, "joined from at least one"),
        ({"joined": [{"joined": []}]}, "has a name and options"),
    ],
)
def test_what_is_no_encoder_is_refused(data: object, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        encoder_from_json(data)


def test_statements_have_all_features_on_the_device_of_the_sketch() -> None:
    population = sketches_of("gemm")[0].sample(np.random.default_rng(0), 4)
    assert StatementEncoder().encode(population).shape[2] == len(FEATURE_NAMES)
    assert hardware_of(population).threads == OPTIONS.threads
    assert hardware_of(population).l1_bytes == OPTIONS.target.l1_bytes


def test_the_analytical_model_scores_a_population_as_its_schedule() -> None:
    for sketch in sketches_of("layer_norm"):
        population = sketch.sample(np.random.default_rng(0), 8)
        expected = score_schedule(population.schedule, 8, hardware_of(population))
        np.testing.assert_allclose(AnalyticalModel().predict(population), expected, rtol=1e-5)


def test_different_encoders_are_different() -> None:
    assert len({StatementEncoder(), EstimateEncoder(), ChoicesEncoder(), StatementEncoder()}) == 3
