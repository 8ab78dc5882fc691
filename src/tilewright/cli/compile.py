"""`tilewright compile MODEL`: a file that runs without compiling, or a library for programs in C."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.cli import network, workload
from tilewright.cli.target import DEFAULT_TARGET
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.deploy.compiled import CompiledModel
    from tilewright.network import CompiledNetwork


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the program's parser."""
    parser = subcommands.add_parser(
        "compile",
        help="compile a model into a file that runs at once, or into a C library",
        description="Compile a model with the best programs that the records hold; a task without a record gets the "
        "best program by the cost model that ships.",
    )
    parser.add_argument("workload", metavar="MODEL", help="such as model.onnx or zoo:resnet18")
    parser.add_argument("--records", metavar="FILE", help="take the programs that `tilewright tune` found")
    parser.add_argument("-o", "--output", metavar="OUT", help="default: NAME.tw, or the folder NAME_c")
    parser.add_argument("--target", default=DEFAULT_TARGET, metavar="T", help="default: %(default)s")
    parser.add_argument("--threads", type=int, metavar="N", help="the most threads that it uses (default: all cores)")
    network.add_exact_argument(parser)
    network.add_shape_argument(parser)
    parser.add_argument(
        "--format",
        choices=("tw", "c"),
        default="tw",
        help="tw: a file for `tilewright run` and InferenceSession; c: a folder with a shared library, its header and "
        "an example in C (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Compile, write, and print what was written."""
    from tilewright.network import name_of
    from tilewright.target import Target

    if network.is_compiled(arguments.workload):
        raise UsageError(f"MODEL is {arguments.workload}, which is compiled already; give the model it was made of")
    is_library = arguments.format == "c"
    name = name_of(arguments.workload)
    path = arguments.output or (f"{name}_c" if is_library else f"{name}.tw")
    network.check_place("-o", path, is_folder=is_library)
    target, threads = Target.parse(arguments.target), workload.num_threads(arguments)
    compiled = network.compile_shown(
        network.partition_of(arguments), arguments.records, target, threads, arguments.exact
    )
    written = _write_library(compiled.model, path, name) if is_library else write_artifact(compiled.model, path)
    print("\n".join([*written, *describe(compiled)]))


def write_artifact(model: CompiledModel, path: str) -> list[str]:
    """Write the file; what to say of it."""
    from tilewright.deploy.artifact import save

    save(model, path)
    return [f"artifact: {path}, {_size(path)}"]


def _write_library(model: CompiledModel, folder: str, name: str) -> list[str]:
    from tilewright.deploy.export_c import export_c

    library = export_c(model, folder, c_name(name))
    header, example = library.parent / f"{c_name(name)}.h", library.parent / "example.c"
    return [f"library: {library}, {_size(library)}", f"header: {header}", f"example: {example}"]


def c_name(name: str) -> str:
    """The name as an identifier of C.

    >>> c_name("resnet-18.v2"), c_name("3d")
    ('resnet_18_v2', 'model_3d')
    """
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return plain if re.match(r"[A-Za-z_]", plain) else f"model_{plain}"


def describe(compiled: CompiledNetwork) -> list[str]:
    """The kernels, where their programs come from, and what has no kernel."""
    model = compiled.model
    num_calls = sum(len(step.calls) for step in model.native_steps)
    lines = [
        f"kernels: {len(model.kernels)}, called {num_calls} times; {compiled.origin}",
        f"target: {model.target}, up to {model.threads} threads",
    ]
    lines += [f"algorithms: {text}" for text in described_algorithms(model)]
    operators = Counter(call.node.op for call in model.fallbacks)
    if operators:
        listing = ", ".join(f"{count} {op}" for op, count in operators.items())
        lines.append(f"without a kernel, run by the reference evaluator of ONNX: {listing}")
    return lines


def described_algorithms(model: CompiledModel) -> list[str]:
    """What kernels have in the place of sums, in a line; none where all are computed as they are written."""
    from tilewright.te.algorithms import is_exact

    used = Counter(name for kernel in model.kernels for name in kernel.algorithms)
    listing = ", ".join(f"{count} by {name}" for name, count in sorted(used.items()))
    rounds = [name for name in sorted(used) if not is_exact(name)]
    if rounds and len(rounds) < len(used):
        listing += f"; {', '.join(rounds)} round more than sums do; --exact leaves them out"
    elif rounds:
        listing += ", which round more than sums do; --exact leaves them out"
    return [listing] if used else []


def _size(path: str | Path) -> str:
    num_bytes = Path(path).stat().st_size
    return f"{num_bytes / 1e6:.1f} MB" if num_bytes >= 1e5 else f"{num_bytes / 1e3:.1f} kB"
