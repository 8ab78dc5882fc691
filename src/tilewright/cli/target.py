"""`tilewright target`: what the compiler knows of a machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.target import Target

DEFAULT_TARGET = "llvm -mcpu=native"


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the program's parser."""
    parser = subcommands.add_parser("target", help="describe a target", description="Describe a target.")
    parser.add_argument("--target", default=DEFAULT_TARGET, metavar="T", help="default: %(default)s")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the description of `arguments.target`."""
    from tilewright.target import Target

    print(describe(Target.parse(arguments.target)))


def describe(target: Target) -> str:
    """One line a property."""
    rows = [
        ("triple", target.triple),
        ("cpu", target.cpu),
        ("cores", str(target.num_cores)),
        ("vector width", f"{target.vector_bytes * 8} bits"),
        ("vector registers", str(target.num_vector_registers)),
        ("fused multiply-add", "yes" if target.has_fma else "no"),
        ("L1 data cache", _size(target.l1_bytes)),
        ("L2 cache", _size(target.l2_bytes)),
        ("L3 cache", _size(target.l3_bytes)),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _size(num_bytes: int) -> str:
    if num_bytes == 0:
        return "none"
    if num_bytes % 2**20 == 0:
        return f"{num_bytes // 2**20} MiB"
    return f"{num_bytes / 2**10:g} KiB"
