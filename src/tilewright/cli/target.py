"""`tilewright target`: what the compiler knows of a machine, and how that is measured."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.target import Target

DEFAULT_TARGET = "llvm -mcpu=native"

_MAX_LOAD = 0.5  # processes that were running just before


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the program's parser."""
    parser = subcommands.add_parser(
        "target",
        help="describe a target, and measure this machine",
        description="Describe a target. With --calibrate, first measure what a core of this machine does in a cycle: "
        "from then on, programs that were not tuned are chosen by that.",
    )
    parser.add_argument("--target", default=DEFAULT_TARGET, metavar="T", help="default: %(default)s")
    parser.add_argument("--calibrate", action="store_true", help="measure this machine; takes a few seconds")
    parser.add_argument("--calibration", metavar="FILE", help="where --calibrate writes (default: the user's own file)")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: %(default)s")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the description of `arguments.target`, measured first if that is asked for."""
    from tilewright.target import Target

    if arguments.calibrate:
        calibrate(arguments)
    elif arguments.calibration is not None:
        raise UsageError("--calibration names the file that --calibrate writes; give both, or neither")
    target = Target.parse(arguments.target)
    print(as_json(target) if arguments.format == "json" else describe(target))


def calibrate(arguments: argparse.Namespace) -> None:
    """Measure this machine, and write the file that `Target.native` reads."""
    from tilewright.measure.calibration import calibrate as measure
    from tilewright.target import (
        CALIBRATION_VARIABLE,
        Calibration,
        Target,
        calibration_path,
        default_threads,
        read_machine,
        write_calibration,
    )

    if arguments.target != DEFAULT_TARGET:
        raise UsageError(f"--calibrate measures this machine; got --target {arguments.target!r}: leave one of them out")
    path = _chosen_path(arguments.calibration)
    target = Target.native().uncalibrated
    print("measuring; nothing else should run on this machine meanwhile", file=sys.stderr, flush=True)
    busy = os.getloadavg()[0]
    numbers = measure(target, default_threads())
    write_calibration(path, Calibration(read_machine().processor, str(target), numbers))
    print(f"the calibration is in {path}", file=sys.stderr)
    if busy > _MAX_LOAD:
        warnings.warn(
            f"{busy:.1f} cores were busy with other work, so that memory and parallel regions look slower than they "
            "are; measure again when the machine is idle",
            stacklevel=2,
        )
    if path != calibration_path():
        print(f"set {CALIBRATION_VARIABLE}={path} to use it", file=sys.stderr)


def _chosen_path(given: str | None) -> Path:
    """Where the calibration goes: where programs look for it, unless somebody wants it elsewhere."""
    from tilewright.target import CALIBRATION_VARIABLE, calibration_path

    path = calibration_path() if given is None else Path(given)
    if path is None:
        raise UsageError(
            f"there is no place for a calibration, since {CALIBRATION_VARIABLE} is empty or there is no home folder; "
            "name a file with --calibration"
        )
    return path


def describe(target: Target) -> str:
    """One line a property."""
    from tilewright.target import MEASURED

    calibrated, reason = calibration_state(target)
    rows = [
        ("target", str(target)),
        ("triple", target.triple),
        ("cpu", target.cpu),
        ("cores", str(target.num_cores)),
        ("vector width", f"{target.vector_bytes * 8} bits"),
        ("vector registers", str(target.num_vector_registers)),
        ("fused multiply-add", "yes" if target.has_fma else "no"),
        ("L1 data cache", _size(target.l1_bytes)),
        ("L2 cache", _size(target.l2_bytes)),
        ("L3 cache", _size(target.l3_bytes)),
        ("cache line", f"{target.cache_line_bytes} bytes"),
        ("core", target.family),
        ("calibrated", f"{'yes' if calibrated else 'no'}, {reason}"),
        *((name, f"{getattr(target.core, name):g}") for name in MEASURED),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def as_json(target: Target) -> str:
    """The same for programs, with all numbers of the core."""
    calibrated, reason = calibration_state(target)
    return json.dumps(
        {
            "target": str(target),
            "triple": target.triple,
            "cpu": target.cpu,
            "features": sorted(target.enabled_features),
            "num_cores": target.num_cores,
            "vector_bytes": target.vector_bytes,
            "num_vector_registers": target.num_vector_registers,
            "has_fma": target.has_fma,
            **target.caches._asdict(),
            "family": target.family,
            "is_calibrated": calibrated,
            "calibration": reason,
            "core": asdict(target.core),
        },
        indent=2,
    )


def calibration_state(target: Target) -> tuple[bool, str]:
    """Whether the numbers of the target's core were measured; where, or why not."""
    from tilewright.target import calibration_path, is_calibration_of, read_calibration, read_machine, runs_here

    if not runs_here(target):
        return False, "since it is another machine"
    path = calibration_path()
    try:
        found = None if path is None else read_calibration(path)
    except UsageError as error:
        return False, f"since {error}"
    if found is None:
        return False, "run `tilewright target --calibrate`"
    if not is_calibration_of(found, target, read_machine().processor):
        return False, f"since {path} is of another one, {found.processor} ({found.target})"
    if any(getattr(target.core, name) != value for name, value in found.core.items()):
        return False, f"since {path} is for `native`, and this target has numbers of its own"
    return True, f"by {path}"


def _size(num_bytes: int) -> str:
    if num_bytes == 0:
        return "none"
    if num_bytes % 2**20 == 0:
        return f"{num_bytes // 2**20} MiB"
    return f"{num_bytes / 2**10:g} KiB"
