"""The interface of `onnx.backend`: `prepare`, `run_model`, `run_node` and `supports_device`.

from tilewright import backend
outputs = backend.prepare(model).run([x])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto
from onnx.backend import base

from tilewright.deploy.compilation import naive_trace
from tilewright.deploy.compiled import CompiledModel
from tilewright.deploy.session import NodeArg
from tilewright.errors import KernelArgumentError, UsageError
from tilewright.graph.protos import static_type
from tilewright.network import InferenceSession, compile_network
from tilewright.target import checked_threads

_SCHEDULES = ("default", "naive")


class BackendRep(base.BackendRep):  # type: ignore[misc]
    """A model that is ready to run.

    One that leaves shapes of its inputs open is compiled when they are known: once for all inputs of the same shapes.
    """

    def __init__(self, model: ModelProto, threads: int | None, schedule: str, exact: bool) -> None:
        self._model = model
        self._threads = checked_threads(threads)
        self._is_naive = schedule == "naive"
        self._exact = exact
        self._sessions: dict[tuple[tuple[int, ...], ...], InferenceSession] = {}
        constants = {tensor.name for tensor in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in constants]
        self._names = [value.name for value in inputs]
        self._open_names = [value.name for value in inputs if _is_open(value)]
        if not self._open_names:
            self._session_for({})

    @property
    def compiled_models(self) -> list[CompiledModel]:
        """What has been compiled so far."""
        return [session.model for session in self._sessions.values()]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in a tuple whose elements have the names of the outputs too.

        `inputs` is a sequence, a dictionary by name, or the array itself of a model that takes one.
        """
        if kwargs:
            raise UsageError(f"run has no option {next(iter(kwargs))!r}; give options to prepare")
        feed = self._feed(inputs)
        session = self._session_for(feed)
        results = session.run(None, feed)
        values = self._model.graph.output
        named: type[tuple[Any, ...]] = base.namedtupledict("Outputs", [value.name for value in values])
        return named(*map(_as_onnx, results, session.get_outputs(), values))

    def _feed(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, dict):
            return inputs
        given = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        if len(given) > len(self._names):
            raise KernelArgumentError(
                f"{len(given)} inputs were given to a model that takes {len(self._names)}: {', '.join(self._names)}"
            )
        return dict(zip(self._names, given, strict=False))

    def _session_for(self, feed: dict[str, Any]) -> InferenceSession:
        shapes = {name: np.shape(feed[name]) for name in self._open_names if name in feed}
        key = tuple(shapes.values())
        if key not in self._sessions:
            compiled = compile_network(
                self._model,
                threads=self._threads,
                shapes=shapes,
                exact=self._exact,
                default_trace=naive_trace if self._is_naive else None,
            )
            self._sessions[key] = InferenceSession(compiled)
        return self._sessions[key]


class Backend(base.Backend):  # type: ignore[misc]
    """Tilewright as a backend of ONNX."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model is for a device that there is."""
        return cls.supports_device(device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Only the processor."""
        return device.partition(":")[0] == "CPU"

    @classmethod
    def prepare(
        cls,
        model: ModelProto,
        device: str = "CPU",
        *,
        threads: int | None = None,
        schedule: str = "default",
        exact: bool = False,
    ) -> BackendRep:
        """Compile a model.

        `schedule` is "default", or "naive" for plain loops, which compile faster and run slower. With
        `exact`, no algorithm is used that rounds more than the sums of the model do, such as Winograd's.
        """
        if not cls.supports_device(device):
            raise UsageError(f"device is {device!r}; the only one is 'CPU'")
        if schedule not in _SCHEDULES:
            raise UsageError(f"schedule is {schedule!r}; it must be one of {', '.join(_SCHEDULES)}")
        return BackendRep(model, threads, schedule, exact)

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        """Compile a model and run it once."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        *,
        opset_version: int | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Compile one node and run it once. `outputs_info`, the types of its outputs, is not needed."""
        model = _model_of_node(node, list(inputs), opset_version)
        return cls.run_model(model, inputs, device, **options)


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
is_compatible = Backend.is_compatible


def _model_of_node(node: NodeProto, inputs: Iterable[Any], opset: int | None) -> ModelProto:
    names = list(dict.fromkeys(name for name in node.input if name))
    arrays = [np.asarray(array) for array in inputs]
    if len(arrays) != len(names):
        raise KernelArgumentError(
            f"{len(arrays)} inputs were given to a node {node.op_type} that takes {len(names)}: {', '.join(names)}"
        )
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, arrays, strict=True)
    ]
    wanted = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = onnx.helper.make_graph([node], node.op_type, values, wanted)
    version = opset or onnx.defs.onnx_opset_version()
    opsets = [onnx.helper.make_opsetid("", version)]
    if node.domain not in ("", "ai.onnx"):
        latest = max(s.since_version for s in onnx.defs.get_all_schemas() if s.domain == node.domain)
        opsets.append(onnx.helper.make_opsetid(node.domain, latest))
    return onnx.helper.make_model(graph, opset_imports=opsets)


def _is_open(value: onnx.ValueInfoProto) -> bool:
    """Whether the model leaves the shape of a tensor open."""
    if not value.type.HasField("tensor_type"):
        return False
    known = static_type(value.type)
    # Some tools write 0 for open.
    return known is None or 0 in known.shape


def _as_onnx(result: Any, known: NodeArg, declared: onnx.ValueInfoProto) -> Any:
    """Sessions give bfloat16 as its bits; its shape may be known only now, and then the model has to say the type."""
    bfloat16 = onnx.TensorProto.BFLOAT16
    is_bfloat16 = known.type == "tensor(bfloat16)" or declared.type.tensor_type.elem_type == bfloat16
    return result.view(onnx.helper.tensor_dtype_to_np_dtype(bfloat16)) if is_bfloat16 else result
