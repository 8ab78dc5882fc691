"""MTL-TLP has a head for each device: whose labels it learns from, and whose scores it gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.cost_model import Dataset, Examples, Measured, load, pairwise_accuracy
from tilewright.cost_model.neural import MtlTlp
from tilewright.errors import UsageError
from tilewright.space import Population
from tilewright.testing.encoder_checks import sketches_of

NUM = 48


def programs() -> Population:
    (sketch, *_) = sketches_of("gemm")
    return sketch.sample(np.random.default_rng(0), NUM)


def liked(population: Population) -> NDArray[np.float64]:
    """Something that the primitives tell."""
    return population.rows[:, 0] + 0.01 * population.rows[:, 1] + 1.0


def two_devices(num_labels: int = NUM) -> Examples:
    """One device likes what the other does not; the second has few labels."""
    population = programs()
    times = liked(population)
    few = population[np.arange(num_labels)]
    groups = (Measured(population, times, device="up"), Measured(few, 1 / times[:num_labels], device="down"))
    return Dataset(groups).encoded(MtlTlp().encoder)


def fitted(examples: Examples, target: str = "", epochs: int = 40) -> MtlTlp:
    model = MtlTlp(width=16, num_heads=2, epochs=epochs, learning_rate=5e-3, target=target, validation_share=0.0)
    model.fit_examples(examples)
    return model


@pytest.mark.parametrize("num_labels", [NUM, 12])
def test_each_head_ranks_for_its_device(num_labels: int) -> None:
    model = fitted(two_devices(num_labels))
    assert model.devices_ == ("down", "up")
    values, times = model.encoder.encode(programs()), liked(programs())
    for target, throughput in (("up", 1 / times), ("down", times)):
        model.target = target
        assert pairwise_accuracy(model.score(values), throughput) > 0.8
    by_device = []
    for target in model.devices_:
        model.target = target
        by_device.append(model.score(values))
    model.target = ""
    np.testing.assert_allclose(model.score(values), np.mean(by_device, axis=0), rtol=1e-5)


def test_devices_are_in_the_file(tmp_path: Path) -> None:
    model = fitted(two_devices(), target="down", epochs=1)
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert isinstance(loaded, MtlTlp)
    assert (loaded.devices_, loaded.target) == (("down", "up"), "down")
    loaded.target = "elsewhere"
    with pytest.raises(UsageError, match="a device that it learns from, down, up, got 'elsewhere'; choose one of them"):
        loaded.predict(programs())


def test_a_target_without_programs_is_refused_before_training() -> None:
    with pytest.raises(UsageError, match="a device that it learns from, down, up, got 'elsewhere'"):
        fitted(two_devices(), target="elsewhere")


def test_programs_without_a_device_update_the_target_and_those_of_a_new_one_are_refused() -> None:
    examples = two_devices()
    model = fitted(examples, target="down", epochs=1)
    here = replace(examples, devices=np.zeros(len(examples), np.int64), device_names=("",))
    assert model.network_ is not None
    weights = model.network_.weights
    model.update_examples(here)
    changed = {name for name, array in model.network_.weights.items() if np.any(array != weights[name])}
    assert any(name.startswith("heads.0") for name in changed)
    assert not any(name.startswith("heads.1") for name in changed)
    with pytest.raises(UsageError, match="down, up; got some of third; fit it anew"):
        model.update_examples(replace(here, device_names=("third",)))


def test_on_a_device_its_head_scores_unless_a_target_is_set() -> None:
    model = fitted(two_devices(), epochs=1)
    values = model.encoder.encode(programs())
    assert model.on_device("elsewhere") is model
    scores = model.on_device("up").score(values)
    assert model.target == ""
    model.target = "up"
    np.testing.assert_array_equal(scores, model.score(values))
    assert model.on_device("down") is model


def test_what_was_known_stays_where_learning_anew_fails() -> None:
    model = fitted(two_devices(), epochs=1)
    values = model.encoder.encode(programs())
    scores = model.score(values)
    model.learning_rate = -1.0
    here = replace(two_devices(), device_names=("here", "there"))
    with pytest.raises(UsageError, match="learning_rate"):
        model.fit_examples(here)
    assert model.devices_ == ("down", "up")
    np.testing.assert_array_equal(model.score(values), scores)
