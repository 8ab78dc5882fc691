"""Whether the kernel calls of a native step stay within its memory, and read only what was written before.

What memory a kernel touches is known with its code, and is believed as that is.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.deploy.compiled import CompiledModel, KernelCall, KernelMemory, NativeStep, Place, Slot
from tilewright.deploy.memory_plan import ALIGNMENT


class MisfitError(Exception):
    """What does not fit in a compiled model."""


def check_calls(model: CompiledModel, step: NativeStep, array_bytes: Sequence[int], where: str) -> None:
    """Check the calls; `array_bytes` are the sizes of the inputs and then the outputs of the step."""
    for number, call in enumerate(step.calls):
        if call.kernel >= len(model.kernels):
            raise MisfitError(
                f"{where}, call {number} is of kernel {call.kernel}, but there are {len(model.kernels)} kernels"
            )
    memories = [model.kernels[call.kernel].memory for call in step.calls]
    weight_bytes = [array.nbytes for array in model.weights]
    calls = _Calls(step, {Place.ARGUMENT: array_bytes, Place.WEIGHT: weight_bytes}, where)
    for number, (call, memory) in enumerate(zip(step.calls, memories, strict=True)):
        if call.workspace_offset > step.arena_bytes:
            raise MisfitError(
                f"{where}, call {number} has a workspace at {call.workspace_offset} of the arena, which has "
                f"{step.arena_bytes} bytes"
            )
        if memory is None:
            calls.check_places(call, f"{where}, call {number}")
        else:
            calls.check(call, memory, f"{where}, call {number}")
    if None not in memories:
        calls.check_end()


class _Calls:
    """The memory of a step, and what the calls up to some point have written there."""

    def __init__(self, step: NativeStep, sizes: dict[Place, Sequence[int]], where: str) -> None:
        self._step = step
        self._sizes = sizes
        self._where = where
        self._written = set(range(len(step.inputs)))  # of the arrays
        self._arena = _Arena(step.arena_bytes)

    def check_places(self, call: KernelCall, where: str) -> None:
        """All that can be said of a kernel of a file of format 1."""
        for slot in call.slots:
            is_arena = slot.place is Place.ARENA
            limit = self._step.arena_bytes if is_arena else len(self._sizes[slot.place])
            if slot.position >= limit:
                raise MisfitError(f"{where} has an argument at {_shown(slot)}, but there are {limit}")

    def check(self, call: KernelCall, memory: KernelMemory, where: str) -> None:
        num_inputs, num_outputs = len(memory.inputs), len(memory.outputs)
        if len(call.slots) != num_inputs + num_outputs:
            raise MisfitError(
                f"{where} has {len(call.slots)} arguments, but its kernel has {num_inputs} inputs and {num_outputs} "
                "outputs"
            )
        inputs = list(zip(call.slots[:num_inputs], memory.inputs, strict=True))
        outputs = list(zip(call.slots[num_inputs:], memory.outputs, strict=True))
        for slot, nbytes in inputs:
            self._read(slot, nbytes, where)
        in_use = [(slot.position, nbytes) for slot, nbytes in inputs if slot.place is Place.ARENA]
        if memory.workspace:
            self._arena.take(call.workspace_offset, memory.workspace, in_use, where)
        for slot, nbytes in outputs:
            self._write(slot, nbytes, in_use, where)
        self._check_arrays_differ(inputs, outputs, where)

    def check_end(self) -> None:
        """After the last call, every output is written, and the arena is no larger than it can have to be."""
        for position, value in enumerate(self._step.outputs, len(self._step.inputs)):
            if position not in self._written:
                raise MisfitError(f"{self._where} must write its output {value.name}, but no call does")
        if self._step.arena_bytes > self._arena.taken_bytes:
            raise MisfitError(
                f"{self._where} has an arena of {self._step.arena_bytes} bytes, but its calls take no more than "
                f"{self._arena.taken_bytes}"
            )

    def _read(self, slot: Slot, nbytes: int, where: str) -> None:
        if slot.place is Place.ARENA:
            self._arena.read(slot.position, nbytes, where)
            return
        self._check_size(slot, nbytes, where)
        if slot.place is Place.ARGUMENT and slot.position not in self._written:
            raise MisfitError(f"{where} reads {_shown(slot)}, which no call before it writes")

    def _write(self, slot: Slot, nbytes: int, in_use: list[tuple[int, int]], where: str) -> None:
        if slot.place is Place.ARENA:
            self._arena.take(slot.position, nbytes, in_use, where)
            self._arena.write(slot.position, nbytes)
            return
        self._check_size(slot, nbytes, where)
        if slot.place is Place.WEIGHT or slot.position < len(self._step.inputs):
            raise MisfitError(f"{where} writes {_shown(slot)}, which must only be read")
        self._written.add(slot.position)

    def _check_size(self, slot: Slot, nbytes: int, where: str) -> None:
        sizes = self._sizes[slot.place]
        if slot.position >= len(sizes):
            raise MisfitError(f"{where} has an argument at {_shown(slot)}, but there are {len(sizes)}")
        if sizes[slot.position] != nbytes:
            raise MisfitError(
                f"{where} needs {nbytes} bytes as an argument, but {_shown(slot)} has {sizes[slot.position]}"
            )

    def _check_arrays_differ(
        self, inputs: Sequence[tuple[Slot, int]], outputs: Sequence[tuple[Slot, int]], where: str
    ) -> None:
        written = [slot for slot, _ in outputs]
        if len(set(written)) < len(written) or not set(written).isdisjoint(slot for slot, _ in inputs):
            raise MisfitError(f"{where} must write each output to a place of its own")


class _Arena:
    """The arena of a step: the values that lie in it, each until something else is put there."""

    def __init__(self, nbytes: int) -> None:
        self.taken_bytes = 0  # in all, as if nothing were ever put where something was
        self._nbytes = nbytes
        self._ends: dict[int, int] = {}  # of the values, by where they begin

    def read(self, begin: int, nbytes: int, where: str) -> None:
        if self._ends.get(begin) != begin + nbytes:
            raise MisfitError(f"{where} reads {nbytes} bytes at {begin} of the arena, where no such value is written")

    def take(self, begin: int, nbytes: int, in_use: list[tuple[int, int]], where: str) -> None:
        """Make room for a block that is written by a call, which goes on to use those of `in_use`, and this."""
        end = begin + nbytes
        if begin % ALIGNMENT or end > self._nbytes:
            raise MisfitError(
                f"{where} writes {nbytes} bytes at {begin} of the arena, which must be a multiple of {ALIGNMENT} and "
                f"end within its {self._nbytes} bytes"
            )
        if any(begin < other + size and other < end for other, size in in_use):
            raise MisfitError(f"{where} writes {nbytes} bytes at {begin} of the arena, where it has other arguments")
        in_use.append((begin, nbytes))
        for other in [b for b, e in self._ends.items() if begin < e and b < end]:
            del self._ends[other]
        self.taken_bytes += nbytes + -nbytes % ALIGNMENT

    def write(self, begin: int, nbytes: int) -> None:
        """Note the value that is there now."""
        self._ends[begin] = begin + nbytes


def _shown(slot: Slot) -> str:
    return f"{slot.place.name.lower()} {slot.position}"
