"""`tilewright bench WORKLOAD|MODEL`: how fast its best program is here, next to other libraries."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from tilewright.cli import network, workload
from tilewright.cli.comparison import OURS, Row, check_agreement, rows_of, table
from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.cli.workload import WorkloadProgram


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the program's parser."""
    parser = subcommands.add_parser(
        "bench",
        help="time a workload or a model, next to other libraries",
        description="Time the best recorded programs of a workload or a model with --records, otherwise the best by "
        "the cost model that ships. Libraries to compare with are timed in turns with it, on as many threads.",
    )
    workload.add_arguments(parser)
    network.add_shape_argument(parser)
    network.add_exact_argument(parser)
    parser.add_argument("--model", metavar="MODEL", help="of a compiled model: what it was made of, for the libraries")
    parser.add_argument(
        "--against",
        default="",
        metavar="LIBRARIES",
        help="with commas between: numpy, torch; of a model: onnxruntime, openvino, torch",
    )
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="turns of each (default: %(default)s)")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: %(default)s")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Time, and print what was found."""
    if arguments.rounds < 1:
        raise UsageError(f"--rounds is {arguments.rounds}; it must be at least 1")
    if network.is_network(arguments.workload) or network.is_compiled(arguments.workload):
        from tilewright.cli import bench_network

        bench_network.run(arguments)
        return
    for option in ("shape", "model"):
        if getattr(arguments, option):
            raise UsageError(f"--{option} is for models, and {arguments.workload} is a workload")
    program = workload.choose(arguments)
    libraries = [name for name in arguments.against.split(",") if name]
    rows = measure(program, arguments.workload, libraries, arguments.rounds)
    if arguments.format == "json":
        head = {"workload": arguments.workload, "target": str(program.target), "threads": program.threads}
        print(json.dumps(head | {"program": program.origin, "rows": [row.to_json() for row in rows]}, indent=2))
    else:
        print(f"{arguments.workload} on {program.threads} threads: {program.origin}")
        print(table(rows))


def measure(program: WorkloadProgram, workload: str, libraries: list[str], rounds: int) -> list[Row]:
    """The program first, then every way of the libraries."""
    import numpy as np

    from tilewright.peers import library_threads, peers_of, settle_s, take_turns
    from tilewright.runtime.build import build
    from tilewright.te import random_inputs

    task = program.task
    kernel = build(program.schedule, program.target, program.threads)
    arrays = dict(zip((t.name for t in task.inputs), random_inputs(task, np.random.default_rng(0)), strict=True))
    bound = kernel.bind(**{t.name: arrays[t.name] for t in task.constants})
    given = [arrays[t.name] for t in task.inputs if not t.is_constant]
    out = bound(*given)
    with library_threads(program.threads, libraries):
        peers = peers_of(workload, arrays, libraries)
        for name, peer in peers.items():
            check_agreement(name, task.outputs[0].name, out, peer.result())
        calls = {OURS: lambda: bound(*given, out=out)} | {name: peer.call for name, peer in peers.items()}
        timings = take_turns(calls, rounds, settle_s(libraries, program.threads))
    return rows_of(timings, task.flop)
