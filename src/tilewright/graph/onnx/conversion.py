"""Conversions that onnx makes, each in a process of its own: on some models its native code ends the process.

A process costs a few tenths of a second. Only models of old operator sets, and functions of another set than their
model's, need one.
"""

from __future__ import annotations

import json
import subprocess
import sys

from google.protobuf.message import DecodeError, EncodeError
from onnx import ModelProto
from onnx.helper import make_opsetid

from tilewright.errors import ModelError
from tilewright.graph.protos import all_nodes

TIMEOUT_S = 600.0
# What it may take for each byte of the model, which it reads, converts and writes, and for itself.
_MEMORY_A_BYTE = 16
_MEMORY_BYTES = 4 * 2**30
# The converter's inference crashes where the type of their operand is not known, as behind trees of the first versions.
_ML = "ai.onnx.ml"
_CRASHING = ("DictVectorizer", "LabelEncoder")
_HIDDEN = "tilewright.hidden"

# The interpreter finds what this one finds, whatever has been done to sys.path since it started.
_PROGRAM = """
import json, resource, sys
path, memory_bytes, opset = json.loads(sys.argv[1])
sys.path[:] = path
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
_, most = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (memory_bytes if most < 0 else min(memory_bytes, most), most))
from onnx import ModelProto
model = ModelProto.FromString(sys.stdin.buffer.read())
try:
    if opset is None:
        from onnx.inliner import inline_local_functions
        converted = inline_local_functions(model, convert_version=True)
    else:
        from onnx.version_converter import convert_version
        converted = convert_version(model, opset)
except Exception as error:
    sys.exit(f"{error}")
sys.stdout.buffer.write(converted.SerializeToString())
"""


def at_opset(model: ModelProto, opset: int) -> ModelProto:
    """The model written for another version of ONNX's operators.

    What it says of the shapes of its values is left out: the converter refuses what does not agree with its own rules.
    """
    bare = ModelProto()
    bare.CopyFrom(model)
    # Before, constants had to be inputs as well; not all tools knew, and only the converter still minds.
    bare.ir_version = max(bare.ir_version, 4)
    del bare.graph.value_info[:]
    for output in bare.graph.output:
        output.type.tensor_type.ClearField("shape")
    hidden = [node for node in all_nodes(bare.graph.node) if node.domain == _ML and node.op_type in _CRASHING]
    if not hidden:
        return _converted(bare, opset)
    for node in hidden:
        node.domain = _HIDDEN
    bare.opset_import.append(make_opsetid(_HIDDEN, 1))
    converted = _converted(bare, opset)
    for node in all_nodes(converted.graph.node):
        node.domain = _ML if node.domain == _HIDDEN else node.domain
    converted.opset_import.remove(make_opsetid(_HIDDEN, 1))
    return converted


def with_functions_inlined(model: ModelProto) -> ModelProto:
    """The model with its functions in the place of their calls, at the operator set of the model."""
    return _converted(model, None)


def _converted(model: ModelProto, opset: int | None) -> ModelProto:
    try:
        data = model.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise ModelError(f"it is too large, or nested too deep: {error}") from error
    options = json.dumps([sys.path, _MEMORY_BYTES + _MEMORY_A_BYTE * len(data), opset])
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, options], input=data, capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"it takes more than {TIMEOUT_S:.0f} s") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ModelError(said[-1] if said and done.returncode > 0 else f"it ends with signal {-done.returncode}")
    try:
        return ModelProto.FromString(done.stdout)
    except DecodeError as error:
        raise ModelError(f"what it writes does not decode: {error}") from error
