"""`Kernel`: a compiled computation that is called on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tilewright.errors import KernelArgumentError
from tilewright.runtime._native import NativeKernel
from tilewright.runtime.aligned_arrays import aligned_empty
from tilewright.runtime.copies import Block, Copies, copy_bytes
from tilewright.runtime.packing import Packer
from tilewright.runtime.spec import Argument, KernelSpec
from tilewright.te import numpy_dtype

# A NumPy array, or any object in CPU memory with the buffer protocol or DLPack (a torch tensor); never copied.
Array: TypeAlias = Any


class Kernel:
    """A compiled kernel: `kernel(a, b)` returns its output, or a tuple of them if it has several.

    `inputs` are what a call takes, by position or by name; `outputs` what it returns. Arrays must be C-contiguous and
    of exactly the shape and type that the kernel was built for. bfloat16 arrays are NumPy arrays of their bits
    (uint16), arrays of `ml_dtypes.bfloat16`, or tensors of a library that has the type; new outputs are of the first
    kind. A kernel may be called from several threads at once.
    """

    def __init__(
        self, spec: KernelSpec, bound: Mapping[str, Array] | None = None, copies: Copies | None = None
    ) -> None:
        """`bound` holds constants in the form that the entry takes; `bind` makes it, and `with_copies` the copies."""
        self._spec = spec
        self._bound = dict(bound or {})
        self._copies = copies
        self._num_timed = 0
        self._native = NativeKernel(
            spec.name,
            spec.entry_address,
            tuple(
                [(a.name, a.packed.dtype, a.packed.shape, False) if a.packed else _plain(a, False) for a in spec.inputs]
                + [_plain(a, True) for a in spec.outputs]
            ),
            spec.workspace_bytes,
            spec.scratch_bytes,
            spec.num_threads,
            spec.keepalive,
        )
        self._packers = {a.name: Packer(spec, a, a.packed) for a in spec.inputs if a.packed}
        self._takes_inputs_as_they_are = not self._bound and not self._packers
        self._new_outputs = [(a.shape, numpy_dtype(a.dtype), a.nbytes) for a in spec.outputs]
        self.name = spec.name
        self.inputs = tuple(a for a in spec.inputs if a.name not in self._bound)
        self.outputs = spec.outputs

    @property
    def num_threads(self) -> int:
        """How many threads a call uses at most."""
        return self._spec.num_threads

    def __call__(self, /, *inputs: Array, out: Array | Sequence[Array] | None = None, **named: Array) -> Any:
        """Run on `inputs`, given by position or by name, into `out` or into new arrays.

        `out` is an array, or a tuple of arrays for a kernel with several outputs. No output may share memory with
        another argument. Constants that the kernel reads in packed form are packed anew in each call: `bind` them to
        do that once.
        """
        arguments = self._entry_inputs(inputs, named)
        outputs = self._entry_outputs(out)
        self._native(*arguments, *outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def time(
        self,
        /,
        *inputs: Array,
        number: int,
        out: Array | Sequence[Array] | None = None,
        copies: Copies | None = None,
        **named: Array,
    ) -> float:
        """The seconds that `number` runs take together, one after the other with no Python in between.

        Checking arguments, allocating outputs and packing constants is done once, before the clock starts. With
        `copies`, of which the arrays of that name are the first, each run uses the next of them; to write anew what is
        produced for each run is no part of the seconds.
        """
        arrays = (*self._entry_inputs(inputs, named), *self._entry_outputs(out))
        copied = {name: copies for copies in (self._copies, copies) if copies is not None for name in copies.first}
        if not copied:
            return self._native.time(arrays, number)
        first, self._num_timed = self._num_timed, self._num_timed + number
        arguments = (*self._spec.inputs, *self._spec.outputs)
        turns = tuple([copied[a.name].turns_of(a.name) if a.name in copied else (1, 0, 0) for a in arguments])
        return self._native.time(arrays, number, (first, turns))

    def bind(self, /, **constants: Array) -> Kernel:
        """A kernel of the remaining inputs, with `constants` packed once, now.

        A constant that the kernel reads in its plain form is kept by reference, so that later changes to the array are
        seen; of a packed one they are not.
        """
        bound = {name: self._bind_one(name, array) for name, array in constants.items()}
        return Kernel(self._spec, self._bound | bound)

    @property
    def bound_bytes(self) -> int:
        """The memory that one copy of the bound constants takes; 0 where none are bound."""
        return copy_bytes(self._bound_sizes.values())

    @property
    def plain_bound_bytes(self) -> int:
        """What the bound constants take in the form in which they were given."""
        return sum(argument.nbytes for argument in self._spec.inputs if argument.name in self._bound)

    def with_copies(self, block: Block) -> Kernel:
        """A kernel whose runs under `time` read copies of the bound constants in turn, as many as fit into `block`.

        So each run finds its constants as it does in a network: last read when all others were. The block is filled
        here, and is the kernel's from then on.
        """
        if not self._bound:
            raise KernelArgumentError(f"kernel {self.name}: there is nothing to copy; bind its constants first")
        copies = Copies(self._bound, block, self._bound_sizes)
        return Kernel(self._spec, copies.first, copies)

    @property
    def _bound_sizes(self) -> dict[str, int]:
        bound = (argument for argument in self._spec.inputs if argument.name in self._bound)
        return {a.name: a.packed.nbytes if a.packed else a.nbytes for a in bound}

    def __repr__(self) -> str:
        return f"<Kernel {self.name}({_listing(self.inputs)}) -> {_listing(self.outputs)}>"

    def _bind_one(self, name: str, array: Array) -> Array:
        self._check_bindable(name)
        packer = self._packers.get(name)
        if packer is None:
            position = [a.name for a in self._spec.inputs].index(name)
            self._native.check(position, array)
            return array
        packed = packer(array)
        packed.flags.writeable = False
        return packed

    def _check_bindable(self, name: str) -> None:
        bindable = [a.name for a in self.inputs if a.is_constant]
        if name in bindable:
            return
        if name in self._bound:
            reason = "it is bound already"
        elif name in [a.name for a in self.inputs]:
            reason = "it is not a constant; declare it with te.placeholder(..., constant=True)"
        else:
            reason = "there is no such input"
        choices = f"bind one of: {', '.join(bindable)}" if bindable else "this kernel has no constants left to bind"
        raise KernelArgumentError(f"kernel {self.name}: cannot bind {name}: {reason}; {choices}")

    def _entry_inputs(self, inputs: tuple[Array, ...], named: dict[str, Array]) -> tuple[Array, ...]:
        """The arrays that the compiled entry takes, in its order."""
        if named or len(inputs) != len(self.inputs):
            inputs = self._in_order(inputs, named)
        if self._takes_inputs_as_they_are:
            return inputs
        given = dict(zip((a.name for a in self.inputs), inputs, strict=True))
        return tuple([self._entry_input(a.name, given) for a in self._spec.inputs])

    def _entry_input(self, name: str, given: dict[str, Array]) -> Array:
        if name in self._bound:
            return self._bound[name]
        packer = self._packers.get(name)
        return given[name] if packer is None else packer(given[name])

    def _in_order(self, inputs: tuple[Array, ...], named: dict[str, Array]) -> tuple[Array, ...]:
        names = [a.name for a in self.inputs]
        usage = f"it takes {len(names)} inputs: {', '.join(names)}" if names else "it takes no inputs"
        if len(inputs) > len(names):
            raise KernelArgumentError(f"kernel {self.name}: got {len(inputs)} inputs by position; {usage}")
        given = dict(zip(names, inputs, strict=False))
        for name, array in named.items():
            if name not in names:
                raise KernelArgumentError(f"kernel {self.name}: there is no input {name}; {usage}")
            if name in given:
                raise KernelArgumentError(f"kernel {self.name}: input {name} was given by position and name; {usage}")
            given[name] = array
        missing = [name for name in names if name not in given]
        if missing:
            raise KernelArgumentError(f"kernel {self.name}: input {missing[0]} was not given; {usage}")
        return tuple(given[name] for name in names)

    def _entry_outputs(self, out: Array | Sequence[Array] | None) -> tuple[Array, ...]:
        if out is None:
            return tuple([aligned_empty(shape, dtype, nbytes) for shape, dtype, nbytes in self._new_outputs])
        arrays = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if len(arrays) != len(self.outputs):
            raise KernelArgumentError(
                f"kernel {self.name}: out must be {len(self.outputs)} arrays, got {len(arrays)}; "
                f"pass them as a tuple, in this order: {', '.join(a.name for a in self.outputs)}"
            )
        return arrays


def _plain(argument: Argument, is_output: bool) -> tuple[str, str, tuple[int, ...], bool]:
    return argument.name, argument.dtype, argument.shape, is_output


def _listing(arguments: Sequence[Argument]) -> str:
    return ", ".join(map(str, arguments))
