"""What callers of onnxruntime give a session is taken, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.deploy.test_session import A, B, compiled, two_inputs
from tilewright.deploy.compiled import CompiledModel
from tilewright.errors import UsageError
from tilewright.network import InferenceSession

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


@pytest.fixture(scope="module")
def model() -> CompiledModel:
    return compiled(two_inputs())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"providers": None},
        {"providers": []},
        {"providers": [CPU]},
        {"providers": (CPU,)},
        {"providers": [(CPU, {"arena_extend_strategy": "kSameAsRequested"})]},
        {"providers": [CPU], "provider_options": [{}]},
        {"sess_options": None, "providers": [CPU], "provider_options": None},
    ],
)
def test_the_processor_is_taken_as_onnxruntimes_callers_write_it(model: CompiledModel, options: dict[str, Any]) -> None:
    session = InferenceSession(model, **options)
    assert session.get_providers() == [CPU]
    assert np.array_equal(session.run(None, {"a": A, "b": B}, run_options=object())[0], A + B)


def test_providers_before_the_processor_are_warned_of(model: CompiledModel) -> None:
    with pytest.warns(UserWarning, match="runs on the processor alone: CUDAExecutionProvider is not available"):
        InferenceSession(model, providers=[(CUDA, {"device_id": 0}), CPU])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"providers": [CUDA]}, r"providers is \['CUDAExecutionProvider'\]; .* add 'CPUExecutionProvider'"),
        ({"providers": CPU}, "providers is 'CPUExecutionProvider'; give a list of names"),
        ({"providers": 3}, "providers is 3; give a list of names"),
        ({"providers": [3]}, "a provider is a name, or a name and its options, .*; got 3"),
        ({"providers": [(CPU,)]}, "a provider is a name, or a name and its options"),
        ({"providers": [CPU], "provider_options": []}, "provider_options are for each of the providers; got 0 for 1"),
        ({"sess_options": 3}, "sess_options is int; give an onnxruntime.SessionOptions, or threads=N"),
    ],
)
def test_what_is_no_provider_is_named(model: CompiledModel, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        InferenceSession(model, **options)


def test_the_threads_of_session_options_count(model: CompiledModel) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    InferenceSession(model, sess_options=options)
    options.intra_op_num_threads = 600
    with pytest.raises(UsageError, match="threads is 600"):
        InferenceSession(model, sess_options=options)
    InferenceSession(model, sess_options=options, threads=1)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_the_bytes_of_a_compiled_model_are_told_from_those_of_onnx(kind: type) -> None:
    with pytest.raises(UsageError, match="bytes are those of a compiled model, .*; give its path"):
        InferenceSession(kind(b"\x89tilewright\r\n\x1a\n\0 and more"))
