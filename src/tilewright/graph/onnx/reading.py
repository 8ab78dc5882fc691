"""Gets hold of a model: from a file, bytes or a message, at an operator set that the rest knows."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto
from onnx.external_data_helper import uses_external_data

from tilewright.errors import ModelError, UsageError
from tilewright.graph.onnx.arguments import check_operators
from tilewright.graph.onnx.conversion import at_opset
from tilewright.graph.onnx.external_data import load_external_data
from tilewright.graph.onnx.functions import inline_functions
from tilewright.graph.onnx.normal_forms import with_old_resizes
from tilewright.graph.onnx.old_operators import set_aside, written_anew
from tilewright.graph.protos import has_only_texts, normal_domain
from tilewright.operators import ONNX

OLDEST_OPSET = 11


def read_model(source: str | PathLike[str] | bytes | ModelProto) -> ModelProto:
    """The model with its external data loaded and its own functions inlined, at opset 11 or newer."""
    if not isinstance(source, ModelProto | bytes | bytearray | memoryview | str | PathLike):
        raise UsageError(
            f"a model is the path of a file, the bytes of one, or an onnx.ModelProto; got {type(source).__name__}"
        )
    if isinstance(source, ModelProto):
        model = source
        what = "the model"
    elif isinstance(source, bytes | bytearray | memoryview):
        what = "the model"
        model = _parse(bytes(source), what)
    else:
        path = Path(fspath(source))
        what = str(path)
        model = _parse(_read_bytes(path), what)
        load_external_data(model, path)
    _check_whole(model, what)
    return inline_functions(_at_known_opset(model))


def opsets_of(model: ModelProto) -> dict[str, int]:
    """The version of each operator set that the model uses."""
    return {normal_domain(entry.domain): entry.version for entry in model.opset_import}


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}; give the path of an ONNX file") from error


def _parse(data: bytes, what: str) -> ModelProto:
    try:
        return onnx.load_model_from_string(data)
    except DecodeError as error:
        raise ModelError(
            f"{what} is not an ONNX model, or is cut short ({len(data):,} bytes that do not decode: {error}); "
            f"export or download it again"
        ) from error


def _check_whole(model: ModelProto, what: str) -> None:
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise ModelError(f"{what} holds no graph: it is empty, cut short, or not ONNX; export or download it again")
    if not model.opset_import:
        raise ModelError(f"{what} does not say its operator set: it is cut short; export or download it again")
    if not has_only_texts(model.graph):
        raise ModelError(f"{what} has a name that is not text: its bytes are damaged; export or download it again")
    for tensor in model.graph.initializer:
        _check_tensor(tensor, what)


def _check_tensor(tensor: TensorProto, what: str) -> None:
    if uses_external_data(tensor):
        raise ModelError(
            f"{what} keeps the weights {tensor.name} in a file beside it, which is not known here; "
            f"give the path of the model, or load it with onnx.load"
        )


def _at_known_opset(model: ModelProto) -> ModelProto:
    opset = opsets_of(model).get(ONNX, OLDEST_OPSET)
    newest = onnx.defs.onnx_opset_version()
    if opset > newest:
        raise ModelError(
            f"the model uses opset {opset}, newer than the {newest} of the installed onnx {onnx.__version__}; "
            f"upgrade onnx, or export the model with an older opset"
        )
    if opset >= OLDEST_OPSET:
        return model
    if not model.functions:
        check_operators(model.graph.node, opsets_of(model))  # what the converter would be less clear about
    if opset < 9 and any(node.op_type == "Scan" for node in model.graph.node):
        raise ModelError(
            f"the model has a Scan of opset {opset}, which onnx cannot convert; export it with opset 9 or newer"
        )
    try:
        return with_old_resizes(written_anew(at_opset(set_aside(model, opset), OLDEST_OPSET)))
    except ModelError as error:
        raise ModelError(
            f"the model uses opset {opset}, older than {OLDEST_OPSET}, and onnx cannot convert it: {error}; "
            f"export it with opset {OLDEST_OPSET} or newer"
        ) from error
