"""`tilewright inspect model.tw`: what a compiled model is made of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.deploy.compiled import CompiledModel, KernelCode
    from tilewright.operators import TensorType


def describe_file(path: str) -> str:
    """What the file says of itself; it need not be for this machine."""
    from tilewright.deploy.artifact import NOTICE, load, tool_version

    model = load(path, check_target=False)
    size = _count(Path(path).stat().st_size, "byte")
    lines = [f"network {model.name}", f"file {path}: {size}, by tilewright {tool_version(path)}"]
    return "\n".join([*lines, *describe_model(model), NOTICE])


def describe_model(model: CompiledModel) -> list[str]:
    """What goes in and out, the kernels, the memory, and what has no kernel."""
    calls = Counter(call.kernel for step in model.native_steps for call in step.calls)
    num_code = sum(len(kernel.object_code) for kernel in model.kernels)
    arena = max((step.arena_bytes for step in model.native_steps), default=0)
    lines = [f"target {model.target}, up to {_count(model.threads, 'thread')}"]
    lines += [f"input {value.name}: {_describe_type(value.type)}" for value in model.inputs]
    lines += [f"output {output.name}: {_describe_type(output.type)}" for output in model.outputs]
    lines.append(f"kernels {len(model.kernels)}, called {_times(calls.total())}, {_count(num_code, 'byte')} of code")
    lines += [
        f"  {index} {kernel.name}{by_algorithms(kernel)}: called {_times(calls[index])}, "
        f"{_count(len(kernel.object_code), 'byte')}"
        for index, kernel in enumerate(model.kernels)
    ]
    for what, arrays in (("weights", model.weights), ("constants", model.constants)):
        lines.append(f"{what} {len(arrays)}, {_count(sum(array.nbytes for array in arrays), 'byte')}")
    lines.append(f"arena {_count(arena, 'byte')}")
    lines.append(f"fallbacks {len(model.fallbacks)}" + (", by the reference evaluator of ONNX" * bool(model.fallbacks)))
    lines += [f"  {call.node}" for call in model.fallbacks]
    return lines


def by_algorithms(kernel: KernelCode) -> str:
    """What a kernel has in the place of its sums, to stand behind its name."""
    return f" by {', '.join(kernel.algorithms)}" if kernel.algorithms else ""


def _describe_type(known: TensorType | None) -> str:
    return "known when it runs" if known is None else f"{known.dtype}{list(known.shape)}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
