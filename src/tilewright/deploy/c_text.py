"""The C text of a compiled model: its header, its tables and an example, from the templates in c_templates/."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from tilewright.deploy.compiled import CompiledModel, NativeStep, Output, Place, Slot
from tilewright.operators import TensorType
from tilewright.te import DTYPES
from tilewright.version import __version__

_TEMPLATES = Path(__file__).parent / "c_templates"
_C_TYPES = {
    "bool": "uint8_t", "uint8": "uint8_t", "int8": "int8_t", "int32": "int32_t", "int64": "int64_t",
    "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double",
}  # fmt: skip
_PLAIN = frozenset(string.ascii_letters + string.digits + " ._-:[]()")
_PLACES = {Place.ARGUMENT: "TW_ARGUMENT", Place.ARENA: "TW_ARENA", Place.WEIGHT: "TW_CONSTANT"}


@dataclass(frozen=True, slots=True)
class CText:
    """The files of a network in C. `weight_offsets` and `constant_offsets` count from where its weights begin."""

    model: CompiledModel
    name: str
    weight_offsets: Sequence[int]
    constant_offsets: Sequence[int]

    def header(self) -> str:
        model = self.model
        arrays = _macros(f"{self._upper}_INPUT", "input", [(value.name, value.type) for value in model.inputs])
        arrays += _macros(f"{self._upper}_OUTPUT", "output", [(output.name, output.type) for output in model.outputs])
        return self._fill(
            "model.h",
            target=model.target,
            threads=model.threads,
            num_inputs=len(model.inputs),
            num_outputs=len(model.outputs),
            arrays=arrays,
        )

    def source(self) -> str:
        model = self.model
        step = next(iter(model.native_steps), NativeStep((), (), (), 0))
        slots = [slot for call in step.calls for slot in call.slots]
        used = [model.kernels[call.kernel] for call in step.calls]
        return self._fill(
            "model.c",
            kernels="".join(f"extern int32_t {kernel.symbol}{_KERNEL_ARGUMENTS};\n" for kernel in model.kernels),
            slots=_lines(map(_slot, slots)),
            steps=_lines(self._steps(step)),
            weights=_lines(f"{self.name}_weights + {offset}" for offset in self.weight_offsets),
            num_steps=len(step.calls),
            max_slots=max((len(call.slots) for call in step.calls), default=0),
            arena_bytes=step.arena_bytes,
            scratch_bytes=max((kernel.scratch_bytes for kernel in used), default=0),
            arrays=self._argument_arrays(step),
            copies="".join(
                self._copy(position, output) for position, output in enumerate(model.outputs) if output.is_copied
            ),
        )

    def weights(self) -> str:
        return self._fill("weights.S")

    def example(self) -> str:
        inputs, outputs = self.model.inputs, self.model.outputs
        names = [f"{value.name}.bin" for value in inputs] + [f"{output.name}.bin" for output in outputs]
        return self._fill(
            "example.c",
            usage=" ".join(map(_plain_text, names)),
            input_bytes="".join(f"{num_bytes(value.type)}, " for value in inputs),
            output_bytes="".join(f"{num_bytes(output.type)}, " for output in outputs),
        )

    @property
    def _upper(self) -> str:
        return self.name.upper()

    def _fill(self, template: str, **values: object) -> str:
        text = (_TEMPLATES / f"{template}.in").read_text()
        known = {"name": self.name, "upper": self._upper, "version": __version__}
        return Template(text).substitute(known | values, title=_plain_text(self.model.name))

    def _steps(self, step: NativeStep) -> Iterable[str]:
        first_slot = 0
        for call in step.calls:
            symbol = self.model.kernels[call.kernel].symbol
            yield f"{{{symbol}, {first_slot}, {len(call.slots)}, {call.workspace_offset}}}"
            first_slot += len(call.slots)

    def _argument_arrays(self, step: NativeStep) -> str:
        """The arrays of the step are inputs and outputs of the network, since there are no fallbacks."""
        inputs = [self._input(value.name) for value in step.inputs]
        outputs = [self._output(value.name) for value in step.outputs]
        return "".join(f"    arrays[{n}] = (void *){array};\n" for n, array in enumerate(inputs + outputs))

    def _copy(self, position: int, output: Output) -> str:
        name = output.operand.name
        if output.operand.constant is not None:
            source = f"{self.name}_weights + {self.constant_offsets[output.operand.constant]}"
        elif name in [value.name for value in self.model.inputs]:
            source = self._input(name)
        else:
            source = self._output(name)
        return f"    memcpy(outputs[{position}], {source}, {num_bytes(output.type)});\n"

    def _input(self, name: str) -> str:
        return f"inputs[{[value.name for value in self.model.inputs].index(name)}]"

    def _output(self, root: str) -> str:
        roots = [None if output.is_copied else output.operand.name for output in self.model.outputs]
        return f"outputs[{roots.index(root)}]"


_KERNEL_ARGUMENTS = "(const tw_runtime *rt, void *const *args, void *workspace)"


def num_bytes(known: TensorType | None) -> int:
    """The size of an array of this type, which a kernel can hold."""
    assert known is not None, "without fallbacks every type is known"
    return math.prod(known.shape) * DTYPES[known.dtype].bytes


def _macros(prefix: str, role: str, values: Sequence[tuple[str, TensorType | None]]) -> str:
    text = ""
    for position, (name, known) in enumerate(values):
        assert known is not None, "without fallbacks every type is known"
        shape = ", ".join(map(str, known.shape))
        text += f"""
/* {role} {position}, "{_plain_text(name)}": {known.dtype}[{shape}] */
#define {prefix}_{position}_NAME "{_c_string(name)}"
#define {prefix}_{position}_TYPE {_C_TYPES[known.dtype]}
#define {prefix}_{position}_NUM_DIMS {len(known.shape)}
#define {prefix}_{position}_SHAPE {{{shape or 1}}}
#define {prefix}_{position}_NUM_ELEMENTS {math.prod(known.shape)}
"""
    return text


def _slot(slot: Slot) -> str:
    return f"{{{_PLACES[slot.place]}, {slot.position}}}"


def _lines(entries: Iterable[str]) -> str:
    return "".join(f"    {entry},\n" for entry in entries)


def _plain_text(text: str) -> str:
    """The text as it may stand in a comment or in a message."""
    return "".join(c if c in _PLAIN else "_" for c in text)


def _c_string(text: str) -> str:
    """The text within quotes: everything but plain characters as the octal value of its bytes."""
    return "".join(chr(b) if chr(b) in _PLAIN else f"\\{b:03o}" for b in text.encode())
