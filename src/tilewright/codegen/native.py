"""LLVM IR text -> object code -> functions in this process.

Only two passes run before code generation: `sroa` makes registers of the local accumulators, and `simplify_cfg` joins
blocks. The code is as fast as after the -O2 pipeline, for a fraction of its time: the builder has already numbered and
hoisted values, so that `instruction_combine` finds nothing. llvmlite holds a lock around each call into LLVM, so
everything here may be used from several threads, of which one compiles at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import takewhile
from typing import Any

from llvmlite import binding

from tilewright.errors import CodegenError
from tilewright.target import Target

# llvmlite has no types.
_Module = Any
_TargetMachine = Any
_Value = Any

_LINES_AROUND_ERROR = 2
_LIBRARY = "object"
_LONG_BLOCK = 1500  # instructions
_NUM_OPERANDS = 5
"""Vector registers that are needed beside sums: where there are fewer, no constant is to wait in one."""
_ELF_MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243}


def compile_object(ir_text: str, target: Target) -> bytes:
    """Compile an LLVM module to a position-independent object file for `target`.

    The text needs neither a triple nor a data layout; functions without a "target-cpu" are compiled for `target`.
    """
    module, machine = _optimize(ir_text, target)
    object_code: bytes = _generated(machine.emit_object, module, target)
    return object_code


def assembly(ir_text: str, target: Target) -> str:
    """The assembly text of what `compile_object` makes."""
    module, machine = _optimize(ir_text, target)
    text: str = _generated(machine.emit_assembly, module, target)
    return text


def optimized_ir(ir_text: str, target: Target) -> str:
    """The LLVM IR that code generation starts from, after the passes."""
    module, _ = _optimize(ir_text, target)
    return str(module)


class LoadedObject:
    """Object files in the memory of this process, which is released together with this Python object.

    Each has its own name space: several may define the same functions, but not the object files of one. What they call
    and do not define (memset) must be defined by a library that the process has loaded.
    """

    __slots__ = ("_addresses", "_jit", "_trackers")

    def __init__(self, *object_codes: bytes) -> None:
        for object_code in object_codes:
            _check_object(object_code)
        # A JIT of its own costs 0.3 ms more than a shared one, which would never forget the libraries it has held.
        self._jit = binding.create_lljit_compiler(
            _target_machine(_host_target()), use_jit_link=True, suppress_errors=True
        )
        library = binding.JITLibraryBuilder().add_current_process()
        for object_code in object_codes:
            library.add_object_img(object_code)
        try:
            self._trackers = [library.link(self._jit, _LIBRARY)]
        except RuntimeError as error:
            raise CodegenError(
                f"an object file must be whole; got {sum(map(len, object_codes))} bytes, of which LLVM says: {error}; "
                "compile it again"
            ) from error
        self._addresses: dict[str, int] = {}

    def address(self, symbol: str) -> int:
        """Where the function `symbol` begins. Valid for as long as this object lives."""
        known = self._addresses.get(symbol)
        if known is not None:
            return known
        try:
            tracker = self._jit.lookup(_LIBRARY, symbol)
        except RuntimeError as error:
            raise CodegenError(
                f"an object file must define the symbol that is asked for, and call only functions that this process "
                f"has; got {symbol!r}, of which LLVM says: {error}; check the name, and which external functions the "
                "object calls"
            ) from error
        self._trackers.append(tracker)
        address: int = tracker[symbol]
        self._addresses[symbol] = address
        return address


def _check_object(object_code: bytes) -> None:
    """LLVM links code of another architecture without a word, and the process dies when it is called."""
    host = _host_target()
    machine = int.from_bytes(object_code[18:20], "little")
    if object_code[:4] != b"\x7fELF" or machine != _ELF_MACHINES[host.arch]:
        found = next((arch for arch, number in _ELF_MACHINES.items() if number == machine), "unknown")
        kind = f"one of {found}" if object_code[:4] == b"\x7fELF" else f"bytes that begin {object_code[:8]!r}"
        raise CodegenError(
            f"only ELF object files of this machine ({host.arch}) can be loaded; got {kind}: "
            "compile for the native target"
        )


def _optimize(ir_text: str, target: Target) -> tuple[_Module, _TargetMachine]:
    machine = _target_machine(target)
    module = _parse(ir_text)
    module.triple = target.triple
    module.data_layout = _data_layout(target)
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
    passes = binding.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    return module, machine


def _generated(emit: Callable[[_Module], Any], module: _Module, target: Target) -> Any:
    """What the target machine makes of the module, with LLVM's own options, which are set back for others."""
    changed = _options(module, target)
    for option in changed:
        binding.set_option("tilewright", f"-{option}")
    try:
        return emit(module)
    except RuntimeError as error:
        raise _rejected("cannot generate code for", target, error) from error
    finally:
        for before in changed.values():
            binding.set_option("tilewright", f"-{before}")


def _options(module: _Module, target: Target) -> dict[str, str]:
    """Options of LLVM that code generation is quicker with, and what they were.

    On x86 without `loop-reduce`, which takes a third of the time and leaves the code as fast as it is: addresses are
    hoisted and numbered already. On aarch64 the scheduler asks of any two accesses of a block whether they alias, which
    takes seconds for long unrolled blocks, such as those of Winograd's transforms, and changes nothing there. Where
    sums fill the registers, constants are not to be hoisted over their loop: they would take the place of one.
    """
    if target.arch == "x86_64":
        changed = {"disable-lsr=true": "disable-lsr=false"}
        if _most_sums(module) > target.num_vector_registers - _NUM_OPERANDS:
            changed["disable-machine-licm=true"] = "disable-machine-licm=false"
        return changed
    if target.arch == "aarch64" and _longest_block(module) > _LONG_BLOCK:
        return {"aarch64-use-aa=false": "aarch64-use-aa=true"}
    return {}


def _most_sums(module: _Module) -> int:
    """The most vectors that a loop carries from one step to the next."""
    blocks = (block for function in module.functions for block in function.blocks)
    return max(map(_num_carried, blocks), default=0)


def _num_carried(block: _Value) -> int:
    phis = takewhile(lambda instruction: instruction.opcode == "phi", block.instructions)
    return sum(phi.type.is_vector for phi in phis)


def _longest_block(module: _Module) -> int:
    """The most instructions that a block has."""
    blocks = (block for function in module.functions for block in function.blocks)
    return max((sum(1 for _ in block.instructions) for block in blocks), default=0)


def _parse(ir_text: str) -> _Module:
    try:
        # A context of its own: LLVM never gives back what a context has interned.
        module = binding.parse_assembly(ir_text, binding.create_context())
        module.verify()
    except RuntimeError as error:
        message = str(error).strip()
        raise CodegenError(
            f"LLVM IR must parse and verify; LLVM says: {message}{_lines_around(ir_text, message)}\n"
            "This is a bug in the code generator unless the text was written by hand: correct it there"
        ) from error
    return module


def _lines_around(ir_text: str, message: str) -> str:
    """The lines around the place that a parse error names, or an empty text if the message names none."""
    place = re.search(r"<string>:(\d+):\d+: error", message)
    if place is None:
        return ""
    number = int(place[1])
    lines = ir_text.splitlines()
    first = max(1, number - _LINES_AROUND_ERROR)
    last = min(len(lines), number + _LINES_AROUND_ERROR)
    return "".join(f"\n{'>' if n == number else ' '} {n:5}  {lines[n - 1]}" for n in range(first, last + 1))


def _rejected(problem: str, target: Target, error: RuntimeError) -> CodegenError:
    return CodegenError(f"{problem} {target}; LLVM says: {error}; compile for another target or change the kernel")


@lru_cache(maxsize=1)
def _initialize_llvm() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


@lru_cache(maxsize=1)
def _host_target() -> Target:
    return Target.native()


@lru_cache(maxsize=32)
def _target_machine(target: Target) -> _TargetMachine:
    _check_cpu(target)
    _initialize_llvm()
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=3,
        reloc="pic",  # so that the object can be linked into a shared library
        codemodel="medium" if target.arch == "riscv64" else "default",
        abiname=_abi_name(target),
    )


def _check_cpu(target: Target) -> None:
    """LLVM may end the process at a name that it does not know."""
    if not target.has_known_cpu and target.cpu != _host_target().cpu:
        raise CodegenError(
            f"code for a processor that is not known here is generated on such a machine; got {target.cpu!r}: compile "
            "there, or for a known one with -mattr"
        )


def _abi_name(target: Target) -> str:
    if target.arch != "riscv64":
        return ""
    enabled = target.enabled_features
    return "lp64d" if "d" in enabled else "lp64f" if "f" in enabled else "lp64"


@lru_cache(maxsize=32)
def _data_layout(target: Target) -> str:
    return str(_target_machine(target).target_data)
