"""The network on the analytical model: where it begins, and what changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tilewright.cost_model import AnalyticalModel, Hierarchical
from tilewright.cost_model.neural.modules.hierarchical import HierarchicalModule
from tilewright.testing.encoder_checks import sketches_of

Values = NDArray[np.float32]


def programs(num: int = 6) -> tuple[Values, NDArray[np.float64]]:
    """Encoded programs of a sketch with several statements, and the analytical model's scores of them."""
    population = sketches_of("softmax")[0].sample(np.random.default_rng(0), num)
    return Hierarchical().encoder.encode(population), AnalyticalModel().predict(population)


def make(is_trained: bool = True) -> HierarchicalModule:
    torch.manual_seed(0)
    module = Hierarchical(width=8, num_heads=2, num_members=2)._module(len(Hierarchical().encoder.columns))
    assert isinstance(module, HierarchicalModule)
    values = programs()[0].reshape(-1, len(Hierarchical().encoder.columns))
    module.set_scale(values.mean(axis=0), values.std(axis=0))
    if is_trained:
        for member in module.members:
            torch.nn.init.normal_(member.correction.weight)
    return module


def scored(module: HierarchicalModule, values: Values, num_padded: int = 0) -> NDArray[np.float32]:
    padded = np.pad(values, ((0, 0), (0, num_padded), (0, 0)))
    mask = np.pad(np.ones(values.shape[:2], np.float32), ((0, 0), (0, num_padded)))
    with torch.no_grad():
        return np.asarray(module(torch.from_numpy(padded), torch.from_numpy(mask)).mean(1).numpy())


def test_it_begins_as_the_analytical_model() -> None:
    values, known = programs()
    np.testing.assert_allclose(scored(make(is_trained=False), values), known, rtol=1e-5)


def test_a_trained_one_differs_and_without_a_residual_does_not() -> None:
    values, known = programs()
    module = make()
    assert np.abs(scored(module, values) - known).max() > 0.1
    module.residual_scale = 0.0
    np.testing.assert_allclose(scored(module, values), known, rtol=1e-5)


def test_rows_behind_a_program_change_nothing() -> None:
    values, _ = programs()
    np.testing.assert_allclose(scored(make(), values, num_padded=3), scored(make(), values), rtol=1e-5)


def test_the_order_of_rows_changes_nothing() -> None:
    values, _ = programs()
    np.testing.assert_allclose(scored(make(), values[:, ::-1].copy()), scored(make(), values), rtol=1e-5)


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_statement_with_other_cycles_counts_by_its_share(factor: float) -> None:
    """Untrained, the score is minus the logarithm of the sum."""
    values, _ = programs(1)
    module = make(is_trained=False)
    cycles = np.exp2(values[0, :, module.estimate].astype(np.float64)) - 1
    cycles[0] *= factor
    values[0, :, module.estimate] = np.log2(1 + cycles)
    np.testing.assert_allclose(scored(module, values), -np.log(cycles.sum()), rtol=1e-5)
