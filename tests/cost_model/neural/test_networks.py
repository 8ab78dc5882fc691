"""A trained network gives what torch gives, on any engine; rows that are not there change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
import torch

from tilewright import UsageError
from tilewright.cost_model import Examples
from tilewright.cost_model.neural import (
    Atformer,
    Hierarchical,
    Lstm,
    Mlp,
    MtlTlp,
    NeuralModel,
    PublishedTlp,
    Tlp,
    TreeGru,
)
from tilewright.cost_model.neural.export import export
from tilewright.cost_model.neural.inference import choose_engine, engine, reference_engine
from tilewright.cost_model.neural.modules.program_module import ScaledModule, Tensor
from tilewright.cost_model.neural.training import column_scale, seeded, set_weights
from tilewright.model_engine import run_compiled
from tilewright.testing.encoder_checks import sketches_of

MODELS: dict[str, NeuralModel] = {
    "mlp": Mlp(width=16),
    "tlp-published": PublishedTlp(width=16, num_heads=2),
    "tlp": Tlp(width=16, num_heads=2),
    "tlp-cut": Tlp(width=16, num_heads=2, length=12),
    "lstm": Lstm(width=8, length=8),
    "mtl-tlp": MtlTlp(width=16, num_heads=2),
    "tree-gru": TreeGru(width=8, num_slots=2),
    "atformer": Atformer(width=8, num_heads=2),
    "hierarchical": Hierarchical(width=8, num_heads=2, num_members=2),
}
"""With the sizes of the conformance tests, so that each is compiled once."""
MASKED = [name for name in MODELS if name != "tlp-published"]


@pytest.fixture
def on_reference() -> Iterator[None]:
    """With the evaluator of ONNX in the place of compiled kernels."""
    before = choose_engine(reference_engine)
    yield
    choose_engine(before)


def programs_of(model: NeuralModel, num: int = 5) -> np.ndarray:
    return model.encoder.encode(sketches_of("conv1d", 1)[0].sample(np.random.default_rng(0), num))


def examples_of(model: NeuralModel) -> Examples:
    groups = [
        model.encoder.encode(sketches_of("conv1d", 1)[number].sample(np.random.default_rng(0), 8)) for number in (0, 2)
    ]
    return Examples.of_groups(groups, [np.linspace(1, 2, 8)] * 2, [0, 1])


def trained(name: str) -> NeuralModel:
    """A model of one epoch: its weights are not those that it began with, nor equal to each other."""
    model = MODELS[name]
    model.epochs, model.learning_rate = 1, 1e-2
    model.fit_examples(examples_of(model))
    return model


def torch_scores(model: NeuralModel, values: np.ndarray, num_rows: int) -> np.ndarray:
    assert model.network_ is not None
    module = model._module(values.shape[2])
    set_weights(module, model.network_.weights)
    padded = np.pad(values, ((0, 0), (0, num_rows - values.shape[1]), (0, 0)))
    mask = np.arange(num_rows) < np.full((len(values), 1), values.shape[1])
    with torch.no_grad():
        outputs = module(torch.from_numpy(padded), torch.from_numpy(mask.astype(np.float32)))
    return model._scores(outputs.numpy())


@pytest.mark.parametrize("name", MODELS)
def test_compiled_kernels_give_what_torch_gives(name: str) -> None:
    assert engine() is run_compiled
    model = trained(name)
    values = programs_of(model)
    expected = torch_scores(model, values, values.shape[1])
    np.testing.assert_allclose(model.score(values), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.usefixtures("on_reference")
def test_the_reference_evaluator_gives_what_torch_gives(name: str) -> None:
    model = trained(name)
    values = programs_of(model)
    expected = torch_scores(model, values, values.shape[1])
    np.testing.assert_allclose(model.score(values), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MASKED)
def test_rows_that_are_filled_up_change_nothing(name: str) -> None:
    model = trained(name)
    values = programs_of(model)
    few, many = (torch_scores(model, values, values.shape[1] + more) for more in (0, 9))
    np.testing.assert_allclose(many, few, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("on_reference")
@pytest.mark.parametrize("name", MODELS)
def test_more_programs_than_a_chunk_are_scored_alike(name: str) -> None:
    model = trained(name)
    values = programs_of(model, 130)
    scores = model.score(values)
    # On some processors NumPy's products round a row by where it stands.
    np.testing.assert_allclose(model.score(values[100:]), scores[100:], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_inputs_are_the_programs_and_all_weights(name: str) -> None:
    model = trained(name)
    assert model.network_ is not None
    graph = onnx.load_model_from_string(model.network_.onnx).graph
    assert [value.name for value in graph.input] == ["values", "mask", *model.network_.weights]
    assert not graph.initializer
    assert {node.op_type for node in graph.node if not node.input} <= {"Constant"}


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_network_does_not_depend_on_what_was_learned(name: str) -> None:
    """Also where weights are equal, as biases that begin with 0: the compiled network serves all trainings."""
    model = trained(name)  # which knows its devices
    num_columns = examples_of(model).num_features
    num_rows = model._exported_rows(examples_of(model))
    with seeded(0):
        first, second = model._module(num_columns), model._module(num_columns)
    for weight in second.parameters():
        torch.nn.init.zeros_(weight)
    assert export(first, num_columns, num_rows) == export(second, num_columns, num_rows)


@pytest.mark.usefixtures("on_reference")
def test_an_lstm_reads_the_beginning_of_programs_longer_than_it_knows() -> None:
    model = Lstm(width=8, epochs=1)
    short = model.encoder.encode(sketches_of("conv1d", 1)[2].sample(np.random.default_rng(0), 4))
    model.fit_examples(Examples.of_groups([short[:, :2]], [np.linspace(1, 2, 4)], [0]))
    assert model.network_ is not None
    assert model.network_.num_rows == 2
    np.testing.assert_array_equal(model.score(short), model.score(short[:, :2]))
    model.update_examples(Examples.of_groups([short], [np.linspace(1, 2, 4)], [0]))
    assert model.network_.num_rows == 16


def test_columns_that_never_vary_count_for_nothing() -> None:
    model = Mlp(width=8, epochs=1)
    examples = examples_of(model)
    _, deviation = column_scale(examples.values)
    model.fit_examples(examples)
    values = programs_of(model)
    other = values.copy()
    other[:, :, deviation == 0] += 1000
    np.testing.assert_array_equal(model.score(other), model.score(values))


class WithOneMore(ScaledModule):
    """A sum over rows, times one more weight."""

    def __init__(self, num_columns: int, name: str, dtype: torch.dtype) -> None:
        super().__init__(num_columns)
        self.name = name
        self.linear = torch.nn.Linear(num_columns, 1)
        self.register_buffer(name, torch.ones(1, dtype=dtype))

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        return (self.linear(self.scaled(values)).squeeze(2) * mask).sum(1) * getattr(self, self.name)


@dataclass(kw_only=True, eq=False)
class Named(NeuralModel):
    name = "named"
    encoder = Mlp.encoder
    weight: str = "mask"
    dtype: torch.dtype = torch.float32

    def _module(self, num_columns: int) -> ScaledModule:
        return WithOneMore(num_columns, self.weight, self.dtype)


@pytest.mark.parametrize("weight", ["values", "mask", "scores"])
def test_a_weight_that_is_called_as_what_a_network_reads_or_gives_is_refused(weight: str) -> None:
    with pytest.raises(UsageError, match=f"have names other than values, mask and scores, .* got {weight}; rename it"):
        Named(weight=weight, epochs=1).fit_examples(examples_of(Mlp()))


def test_a_weight_that_no_file_holds_is_refused_before_training() -> None:
    with pytest.raises(UsageError, match=r"finite float32, got another in places; .*would not come back from its file"):
        Named(weight="places", dtype=torch.int64, epochs=1).fit_examples(examples_of(Mlp()))
