"""Other libraries running a whole ONNX model, each at its best settings for one request at a time.

All compute in float32. The libraries are imported where they are used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from tilewright.errors import UsageError

if TYPE_CHECKING:
    from onnx import ModelProto

Array = NDArray[Any]


class PeerError(UsageError):
    """A library does not run this model here; the message says why."""


class NetworkPeer(Protocol):
    """A model made ready by a library."""

    name: str

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """The outputs of the model, in its order, for inputs by name."""
        ...


def network_peer(library: str, model: ModelProto, threads: int) -> NetworkPeer:
    """The model made ready by a library on `threads` threads.

    Raises PeerError, also when it runs, where the library is not installed or cannot do it.
    """
    make = _MAKE.get(library)
    if make is None:
        raise UsageError(f"a library to run a network with is one of {', '.join(NETWORK_LIBRARIES)}, got {library!r}")
    if find_spec(library) is None:
        raise PeerError(f"{library} is not installed; pip install {library}")
    try:
        return _Loaded(make(model, threads))
    except _errors_of(library) as error:
        raise _cannot(library, "load", error) from error


class _Loaded:
    """A model in a library whose errors are told as ours."""

    def __init__(self, peer: NetworkPeer) -> None:
        self.name = peer.name
        self._run = peer.run

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        try:
            return self._run(inputs)
        except _errors_of(self.name) as error:
            raise _cannot(self.name, "run", error) from error


def _errors_of(library: str) -> tuple[type[Exception], ...]:
    """What a library raises for a model that it cannot run, or where its installation is broken."""
    from google.protobuf.message import EncodeError

    found: tuple[type[Exception], ...] = (
        EncodeError,
        ImportError,
        LookupError,
        OSError,
        RuntimeError,
        TypeError,
        ValueError,
    )
    return (*found, *_onnxruntime_errors()) if library == "onnxruntime" else found


def _onnxruntime_errors() -> list[type[Exception]]:
    """Its errors have no base but Exception. Where its import failed, there are none."""
    module = sys.modules.get("onnxruntime.capi.onnxruntime_pybind11_state")
    names = {} if module is None else vars(module)
    return [value for value in names.values() if isinstance(value, type) and issubclass(value, Exception)]


def _cannot(library: str, what: str, error: Exception) -> PeerError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return PeerError(f"{library} cannot {what} this model: {reason}")


class OnnxruntimeNetwork:
    """The model in onnxruntime with all its graph optimizations."""

    name = "onnxruntime"

    def __init__(self, model: ModelProto, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """The outputs for these inputs."""
        outputs: list[Array] = self._session.run(None, dict(inputs))
        return outputs


class OpenvinoNetwork:
    """The model in OpenVINO, compiled for latency."""

    name = "openvino"

    def __init__(self, model: ModelProto, threads: int) -> None:
        import openvino

        # Without the hint it computes in bfloat16 where the processor can.
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
        }
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", settings)
        self._outputs = [compiled.output(output.name) for output in model.graph.output]
        self._request = compiled.create_infer_request()

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """The outputs for these inputs."""
        found = self._request.infer(dict(inputs), share_inputs=True)
        return [found[output] for output in self._outputs]


class TorchNetwork:
    """The model as a torch module, channels last and with batch norms folded."""

    name = "torch"

    def __init__(self, model: ModelProto, threads: int) -> None:
        from tilewright.peers.torch_graph import NotConvertibleError
        from tilewright.peers.torch_network import module_of

        try:
            self._module, self._input_names = module_of(model)
        except NotConvertibleError as error:
            raise PeerError(f"torch is not given this model: {error}") from error
        self._threads = threads

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """The outputs for these inputs."""
        import torch

        # The number of threads belongs to the process: whoever else uses torch may have changed it.
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        with torch.inference_mode():
            outputs = self._module(*[torch.from_numpy(inputs[name]) for name in self._input_names])
        return [output.contiguous().numpy() for output in outputs]


_MAKE: dict[str, Callable[[ModelProto, int], NetworkPeer]] = {
    peer.name: peer for peer in (OnnxruntimeNetwork, OpenvinoNetwork, TorchNetwork)
}
NETWORK_LIBRARIES = tuple(_MAKE)
