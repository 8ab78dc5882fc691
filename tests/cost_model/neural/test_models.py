"""What the networks learn, what their options do, and what makes each what it is."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from tilewright import UsageError
from tilewright.cost_model import Examples, create, load, pairwise_accuracy
from tilewright.cost_model.neural import Hierarchical, Lstm, Mlp, NeuralModel, PublishedTlp, Tlp
from tilewright.features import HierarchyEncoder
from tilewright.testing.cost_model_checks import sum_structured, sum_structured_examples
from tilewright.testing.encoder_checks import sketches_of


def encoded(model: NeuralModel, num: int = 6) -> np.ndarray:
    return model.encoder.encode(sketches_of("conv1d", 1)[0].sample(np.random.default_rng(0), num))


def fitted(model: NeuralModel) -> NeuralModel:
    values = encoded(model)
    model.fit_examples(Examples.build(list(values), np.linspace(1, 2, len(values)).tolist(), ["task"] * len(values)))
    return model


@pytest.mark.parametrize("loss", ["rank", "rank-mixed", "mse"])
def test_a_network_learns_to_rank(loss: str) -> None:
    model = Mlp(width=32, epochs=30, batch_size=64, learning_rate=5e-3, loss=loss)
    model.fit_examples(sum_structured_examples(400))
    features, latencies_s = sum_structured(200, 3, seed=1)
    assert pairwise_accuracy(model.score(features), 1 / latencies_s) > 0.75


def test_an_update_goes_on_from_what_was_learned() -> None:
    model = Mlp(width=32, epochs=10, batch_size=64, learning_rate=5e-3, update_epochs=20, update_learning_rate=5e-3)
    examples = sum_structured_examples(400)
    features, latencies_s = sum_structured(200, 3, seed=1)
    model.fit_examples(examples)
    before = pairwise_accuracy(model.score(features), 1 / latencies_s)
    model.update_examples(examples)
    assert pairwise_accuracy(model.score(features), 1 / latencies_s) > before


def test_an_update_of_a_model_that_knows_nothing_fits_it() -> None:
    first, second = Mlp(width=8, epochs=2), Mlp(width=8, epochs=2)
    first.fit_examples(sum_structured_examples(32))
    second.update_examples(sum_structured_examples(32))
    features, _ = sum_structured(8, 3, seed=1)
    np.testing.assert_array_equal(first.score(features), second.score(features))


def test_an_update_keeps_the_scale_of_columns() -> None:
    model = Mlp(width=8, epochs=1)
    model.fit_examples(sum_structured_examples(32))
    assert model.network_ is not None
    mean = model.network_.weights["mean"].tolist()
    model.update_examples(sum_structured_examples(64, seed=5))
    assert model.network_.weights["mean"].tolist() == mean


def test_an_update_with_other_columns_is_refused() -> None:
    model = Mlp(width=8, epochs=1)
    model.fit_examples(sum_structured_examples(16))
    values = np.zeros((4, 2, 7), np.float32)
    with pytest.raises(UsageError, match="has learned from 12 features, got 7; fit it anew"):
        model.update_examples(Examples.build(list(values), [1.0] * 4, ["task"] * 4))


def test_an_update_with_options_of_another_network_is_refused() -> None:
    model = Mlp(width=8, epochs=1)
    model.fit_examples(sum_structured_examples(16))
    model.width = 16
    with pytest.raises(UsageError, match="weights of another network than its options say"):
        model.update_examples(sum_structured_examples(16))


def test_no_programs_are_refused() -> None:
    with pytest.raises(UsageError, match="at least one program, got no examples; measure some first"):
        Mlp().fit_examples(Examples.build([], [], []))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Mlp(loss="hinge"), "loss of the cost model mlp is one of rank, rank-mixed, mse, got 'hinge'"),
        (Mlp(epochs=0), "epochs is 0; it must be at least 1"),
        (Mlp(width=0), "width is 0; it must be at least 1"),
        (Mlp(num_threads=10**6), "num_threads is 1000000; it must be at most 512"),
        (Mlp(learning_rate=float("nan")), "learning_rate is nan; it must be a number above 0"),
        (Mlp(learning_rate=10**400), "learning_rate is 1000.*; it must be a number above 0, and at most 1e.06"),
        (Mlp(weight_decay=1e300), "weight_decay is 1e.300; it must be a number of at least 0, and at most 1e.06"),
        (Hierarchical(sharpness=float("inf")), "sharpness is inf; it must be a number above 0"),
        (Mlp(weight_decay=-1.0), "weight_decay is -1.0; it must be a number of at least 0"),
        (Mlp(validation_share=1.0), "validation_share is 1.0; it must be a number from 0 to below 1"),
        (Tlp(width=10), "the width of the cost model tlp is a multiple of 4 and of num_heads, got 10 and 8 heads"),
        (Tlp(width=12), "got 12 and 8 heads"),
        (PublishedTlp(length=0), "length"),
        (Lstm(token_width=0), "token_width is 0; it must be at least 1"),
    ],
)
def test_options_that_make_no_network_are_refused_before_any_work(model: NeuralModel, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model.fit_examples(sum_structured_examples(4))


def test_steps_that_are_too_large_are_an_error_and_no_model() -> None:
    model = Mlp(width=8, epochs=2, learning_rate=1e6, num_blocks=8)
    with pytest.raises(UsageError, match="after its training they are not; choose a smaller learning_rate than 1e.06"):
        model.fit_examples(sum_structured_examples(40))
    assert not model.is_fitted


def test_programs_too_long_to_be_read_one_row_after_the_other_are_refused_before_any_work() -> None:
    encoder = Lstm().encoder
    rows = [np.zeros((1100, len(encoder.columns)), np.float32)] * 2
    with pytest.raises(UsageError, match="up to 1024 primitives .* 1120 .*; set length"):
        Lstm(width=8).fit_examples(Examples.build(rows, [1.0, 2.0], ["task"] * 2))


def test_tlp_as_published_has_as_many_weights() -> None:
    """610,369 with TLP's 22 columns (those that are used there); ours has more kinds of primitives."""
    model = PublishedTlp()
    num_columns = len(model.encoder.columns)
    weights = sum(weight.numel() for weight in model._module(num_columns).parameters())
    assert weights - (num_columns - 22) * 64 == 610_369
    assert model.encoder.encode(sketches_of("conv1d", 1)[0].sample(np.random.default_rng(0), 2)).shape[1] == 25
    assert (model.loss, model.batch_size) == ("rank-mixed", 1024)


def test_tlp_as_published_is_blind_to_the_order_of_primitives_and_tlp_is_not() -> None:
    published, ours = (
        fitted(PublishedTlp(width=16, num_heads=2, epochs=1)),
        fitted(Tlp(width=16, num_heads=2, epochs=1, seed=1)),
    )
    values = encoded(published)
    np.testing.assert_allclose(published.score(values[:, ::-1].copy()), published.score(values), rtol=1e-4)
    values = encoded(ours)
    swapped = values.copy()
    places = [ours.encoder.columns.index(name) for name in ("from_first", "from_last")]
    swapped[:, :, places] = values[:, ::-1, places]
    assert np.abs(ours.score(swapped) - ours.score(values)).min() > 1e-4


@pytest.mark.parametrize(("name", "length"), [("tlp", None), ("tlp", 3), ("lstm", 3), ("tlp-published", 4)])
def test_sequences_are_cut_or_whole(name: str, length: int | None) -> None:
    model = create(name, length=length)
    assert isinstance(model, NeuralModel)
    assert encoded(model).shape[1] == (length or encoded(Tlp()).shape[1])


def test_networks_of_half_the_width_have_about_a_quarter_of_the_weights() -> None:
    full, half = (
        sum(weight.numel() for weight in PublishedTlp(width=width)._module(44).parameters()) for width in (256, 128)
    )
    assert 3.5 < full / half < 4.1


def test_tokens_that_no_table_has_do_not_leave_it() -> None:
    model = fitted(Tlp(width=16, num_heads=2, epochs=1))
    values = encoded(model)
    values[:, :, Tlp().encoder.token_columns] = 1e9
    assert np.isfinite(model.score(values)).all()


def test_a_model_of_another_encoder_says_which_it_reads() -> None:
    values = HierarchyEncoder().encode(sketches_of("conv1d", 1)[0].sample(np.random.default_rng(0), 2))
    with pytest.raises(UsageError, match="tlp reads the 69 columns of the encoder primitives, got 132"):
        Tlp().fit_examples(Examples.build(list(values), [1.0, 2.0], ["task"] * 2))


PREDICT = """
import sys
sys.modules["torch"] = None
import numpy as np
from tilewright import UsageError
from tilewright.cost_model import load
model = load(sys.argv[1])
values = np.load(sys.argv[2])
np.save(sys.argv[3], model.score(values))
try:
    model.fit_examples(__import__("tilewright.testing.cost_model_checks", fromlist=["x"]).sum_structured_examples(4))
except UsageError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["mlp", "tlp"])
def test_prediction_needs_no_torch_and_training_says_that_it_does(name: str, tmp_path: Path) -> None:
    options = {"num_heads": 2} if name == "tlp" else {}
    model = create(name, width=16, epochs=1, **options)
    assert isinstance(model, NeuralModel)
    values = encoded(fitted(model))
    model.save(tmp_path / "model.npz")
    np.save(tmp_path / "values.npy", values)
    command = [sys.executable, "-c", PREDICT, *(str(tmp_path / file) for file in ("model.npz", "values.npy", "s.npy"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), model.score(values))
    if name == "mlp":
        assert (
            "trained with torch, which is not installed; install it with `pip install tilewright[train]`" in done.stdout
        )


def test_a_model_that_has_predicted_goes_to_another_process() -> None:
    model = fitted(Mlp(width=8, epochs=1))
    values = encoded(model)
    scores = model.score(values)
    sent = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(sent.score(values), scores)


@pytest.mark.parametrize("state", ["no gradients", "inference", "autocast", "float64", "another device"])
def test_a_network_learns_whatever_the_caller_has_set_in_torch(state: str) -> None:
    model, same = Mlp(width=8, epochs=2), Mlp(width=8, epochs=2)
    model.fit_examples(sum_structured_examples(32))
    contexts = {
        "no gradients": torch.no_grad(),
        "inference": torch.inference_mode(),
        "autocast": torch.autocast("cpu", torch.bfloat16),
        "another device": torch.device("meta"),
    }
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if state == "float64" else before)
    try:
        with contexts.get(state, nullcontext()):
            same.fit_examples(sum_structured_examples(32))
            same.update_examples(sum_structured_examples(32))
            assert (torch.get_default_dtype() == torch.float64) == (state == "float64")
    finally:
        torch.set_default_dtype(before)
    model.update_examples(sum_structured_examples(32))
    features, _ = sum_structured(8, 3, seed=1)
    np.testing.assert_array_equal(same.score(features), model.score(features))


def test_options_from_an_array_are_in_the_file_as_numbers(tmp_path: Path) -> None:
    model = Mlp(width=np.arange(4, 8)[0], epochs=np.int64(1), learning_rate=np.float32(1e-3))  # type: ignore[arg-type]
    model.fit_examples(sum_structured_examples(8), checkpoint=tmp_path / "checkpoint.npz")
    model.save(tmp_path / "model.npz")
    assert Mlp.load(tmp_path / "model.npz").options == model.options


def test_the_least_lstm_learns_and_comes_back(tmp_path: Path) -> None:
    model = fitted(Lstm(width=1, token_width=1, length=2, epochs=1))
    model.save(tmp_path / "lstm.npz")
    np.testing.assert_array_equal(load(tmp_path / "lstm.npz").score(encoded(model)), model.score(encoded(model)))


@pytest.mark.parametrize("loss", ["rank", "rank-mixed"])
def test_a_ranking_of_one_program_at_a_time_is_refused(loss: str) -> None:
    with pytest.raises(UsageError, match=f"the loss {loss} compares the programs of a batch, .*; choose at least 2"):
        Mlp(width=4, epochs=1, batch_size=1, loss=loss).fit_examples(sum_structured_examples(8))
    model = Mlp(width=4, epochs=1, batch_size=1, loss="mse")
    model.fit_examples(sum_structured_examples(8))
    assert model.is_fitted


def test_networks_that_would_not_come_back_from_their_files_are_refused_before_any_work(tmp_path: Path) -> None:
    values = encoded(Tlp())
    examples = Examples.build(list(values), [1.0] * len(values), ["task"] * len(values))
    with pytest.raises(UsageError, match=r"values of up to .* tlp would not come back from its file; choose smaller"):
        Tlp(width=32, num_heads=32, epochs=1).fit_examples(examples)
    with pytest.raises(UsageError, match="the file of a model holds up to 256 MB of weights, .* mlp has"):
        Mlp(width=65536, epochs=1).fit_examples(sum_structured_examples(4), checkpoint=tmp_path / "checkpoint.npz")
    assert not list(tmp_path.iterdir())
