"""The encoders of the package keep the promises of the interface, and say what they should."""

from __future__ import annotations

import numpy as np

from tilewright.cost_model.analytical import AnalyticalModel, score_schedule
from tilewright.features import (
    FEATURE_NAMES,
    ChoicesEncoder,
    Encoder,
    EstimateEncoder,
    PrimitiveEncoder,
    PublishedPrimitiveEncoder,
    StatementEncoder,
    hardware_of,
)
from tilewright.testing.encoder_checks import OPTIONS, EncoderChecks, sketches_of


class TestStatementEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return StatementEncoder()


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
