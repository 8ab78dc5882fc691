"""What travels between machines: the project's own formats as text and bytes, and each message checked when it is read.

A machine of the fleet may be somebody else's: what it sends is read as a file from a stranger is.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Any

from tilewright.codegen.binary import KernelBinary, PackedInput
from tilewright.codegen.elf import ElfError, functions_of
from tilewright.codegen.module import Entry
from tilewright.errors import TilewrightError
from tilewright.measure.context import Context
from tilewright.measure.local.messages import Setup
from tilewright.measure.measurement import OK, STATUSES, Measurement
from tilewright.measure.options import MeasureOptions
from tilewright.measure.protocols import Built
from tilewright.target import Target
from tilewright.te import DTYPES, Task
from tilewright.te.task_json import task_from_json, task_to_json

PROTOCOL = 3
"""Changes with the messages; machines of different ones do not work together."""

_MOST_BYTES = 1 << 40
_MOST_RUNS = 100_000
_MOST_CHARACTERS = 20_000
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,200}")
_MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243}  # as an object file numbers them
_MACHINE = struct.Struct("<18xH")


class WireError(TilewrightError):
    """A machine of the fleet sent what no machine of this version sends."""


def write_setup(setup: Setup) -> str:
    """What all programs of a batch share. Equal setups have equal texts."""
    content = {
        "protocol": PROTOCOL,
        "task": task_to_json(setup.task),
        "target": str(setup.target),
        "threads": setup.threads,
        "context": str(setup.context),
        "options": asdict(setup.options),
    }
    return json.dumps(content, separators=(",", ":"))


@lru_cache(maxsize=16)
def read_setup(text: str) -> Setup:
    """The same object for the same text: what is prepared for a task is kept as long as it is asked for."""
    content = json.loads(text)
    if content.get("protocol") != PROTOCOL:
        raise WireError(
            f"a tuner speaks version {content.get('protocol')!r:.40} of the fleet's protocol, and this machine "
            f"{PROTOCOL}; install the same version of tilewright on all of them"
        )
    names = {field.name for field in fields(MeasureOptions)}
    options = MeasureOptions(**{name: value for name, value in content["options"].items() if name in names})
    target, context = Target.parse(content["target"]), Context.parse(content["context"])
    return Setup(task_from_json(content["task"]), target, int(content["threads"]), options, context)


def write_built(built: Built) -> dict[str, Any]:
    """Plain numbers, text and bytes."""
    binary = built.binary
    packs = [[p.position, _entry_form(p.entry), list(p.shape), p.dtype, p.nbytes] for p in binary.packs]
    return {
        "object_code": binary.object_code,
        "entry": _entry_form(binary.entry),
        "packs": packs,
        "parts": list(binary.parts),
        "build_s": built.build_s,
        "error_growth": built.error_growth,
    }


def read_built(form: Mapping[str, Any], task: Task, target: Target) -> Built:
    """A kernel that somebody compiled: whole, for this target, and with what it says of itself in order."""
    try:
        content, *parts = (_object_file(code, target) for code in (form["object_code"], *form["parts"]))
        names = functions_of(content).union(*map(functions_of, parts))
        packs = tuple(_read_pack(pack, task, names) for pack in form["packs"])
        binary = KernelBinary(content, _read_entry(form["entry"], names), packs, tuple(parts))
        return Built(binary, _number(form["build_s"]), _number(form["error_growth"], above=0.0))
    except (ElfError, ValueError, KeyError, TypeError) as error:
        raise WireError(f"what was built for task {task.name} is no kernel for {target}: {error}") from error


def _object_file(content: Any, target: Target) -> bytes:
    """One that is whole, and for this target."""
    functions_of(content)
    machine = _MACHINE.unpack_from(content)[0]
    if machine != _MACHINES[target.arch]:
        raise ValueError(f"it is for machine {machine} of the ELF list, not for {target.arch}")
    return bytes(content)


def write_measurement(measurement: Measurement) -> dict[str, Any]:
    """As JSON has it."""
    return asdict(measurement) | {"runs_s": list(measurement.runs_s)}


def read_measurement(form: Any) -> Measurement:
    """What a machine says it measured."""
    try:
        status, error = form["status"], form["error"]
        if status not in STATUSES or not isinstance(error, str) or len(form["runs_s"]) > _MOST_RUNS:
            raise ValueError(f"status {status!r:.40}")
        latency_s = None if form["latency_s"] is None else _number(form["latency_s"], above=0.0)
        if (status == OK) != (latency_s is not None):
            raise ValueError(f"status {status} with latency {latency_s}")
        runs_s = tuple(_number(value) for value in form["runs_s"])
        return Measurement(status, latency_s, runs_s, error[:_MOST_CHARACTERS], _number(form["build_s"]))
    except (ValueError, KeyError, TypeError) as error:
        raise WireError(f"it sent what is no measurement: {error}") from error


def _entry_form(entry: Entry) -> list[Any]:
    return [entry.symbol, entry.workspace_bytes, entry.scratch_bytes]


def _read_entry(form: Any, names: frozenset[str]) -> Entry:
    symbol, workspace_bytes, scratch_bytes = form
    if not isinstance(symbol, str) or not _SYMBOL.fullmatch(symbol) or symbol not in names:
        raise ValueError(f"it has no function {symbol!r:.80}")
    return Entry(symbol, _size(workspace_bytes), _size(scratch_bytes))


def _read_pack(form: Any, task: Task, names: frozenset[str]) -> PackedInput:
    position, entry, shape, dtype, nbytes = form
    if not (isinstance(position, int) and 0 <= position < len(task.inputs) and task.inputs[position].is_constant):
        raise ValueError(f"it packs input {position!r:.40}, which is no constant")
    extents = tuple(_size(extent) for extent in shape)
    if dtype not in DTYPES or _size(nbytes) != math.prod(extents) * DTYPES[dtype].bytes:
        raise ValueError(f"it packs input {position} to {extents} of {dtype!r:.40} in {nbytes!r:.40} bytes")
    return PackedInput(position, _read_entry(entry, names), extents, dtype, nbytes)


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_BYTES:
        raise ValueError(f"{value!r:.40} is no size")
    return value


def _number(value: Any, above: float = -1.0) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not above < value < math.inf or value < 0:
        raise ValueError(f"{value!r:.40} is no time")
    return float(value)
