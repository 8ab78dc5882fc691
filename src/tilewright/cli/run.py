"""`tilewright run MODEL`: the outputs of a network for the inputs in a file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilewright.cli import arrays, network, profile, workload
from tilewright.cli.target import DEFAULT_TARGET
from tilewright.errors import KernelArgumentError, UsageError

if TYPE_CHECKING:
    from tilewright.network import InferenceSession


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the program's parser."""
    parser = subcommands.add_parser(
        "run",
        help="run a model on inputs from a file",
        description="Run a compiled model, or one that is compiled first, once. Inputs and outputs are arrays by name "
        "in .npz files.",
    )
    parser.add_argument("workload", metavar="MODEL", help="such as model.tw, model.onnx or zoo:resnet18")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--input", metavar="FILE", help="an .npz file with an array for each input")
    given.add_argument("--random", action="store_true", help="random inputs, to see whether the model runs")
    parser.add_argument("--output", metavar="FILE", help="the .npz file to write (default: only print the shapes)")
    parser.add_argument("--threads", type=int, metavar="N", help="default: all cores, or what it was compiled for")
    parser.add_argument("--records", metavar="FILE", help="of a model that is not compiled: its tuned programs")
    network.add_shape_argument(parser)
    network.add_exact_argument(parser)
    profile.add_arguments(parser)
    parser.set_defaults(run=run, target=DEFAULT_TARGET)


def run(arguments: argparse.Namespace) -> None:
    """Run, write the outputs, and print their types; with --profile also the times by kernel."""
    profile.check_arguments(arguments)
    if arguments.output:
        network.check_place("--output", arguments.output)
    given = arrays.read_npz(arguments.input) if arguments.input else None
    session = session_of(arguments)
    feed = random_inputs(session, arguments.workload) if given is None else given
    names = [output.name for output in session.get_outputs()]
    try:
        outputs = dict(zip(names, session.run(None, feed), strict=True))
    except KernelArgumentError as error:
        raise UsageError(f"{arguments.input or 'random inputs'}: {error}") from error
    if arguments.output:
        arrays.write_npz(arguments.output, outputs)
    described = {name: _describe(value) for name, value in outputs.items()}
    if arguments.format != "json":
        print("\n".join(f"{name}: {text}" for name, text in described.items()))
        if arguments.output:
            print(f"outputs: {arguments.output}")
    if arguments.profile:
        print_profile(arguments, session, feed, outputs=described)


def print_profile(
    arguments: argparse.Namespace, session: InferenceSession, feed: Mapping[str, Any], **more: Any
) -> None:
    """The times by kernel, as --format says; `more` goes into the JSON."""
    rows = profile.measure(session, feed)
    if arguments.format != "json":
        print(profile.table(rows))
        return
    threads = arguments.threads or session.model.threads
    print(profile.to_json(session, arguments.workload, threads, rows, **more))


def session_of(arguments: argparse.Namespace) -> InferenceSession:
    """The model of the arguments, loaded or compiled."""
    from tilewright.network import InferenceSession
    from tilewright.target import Target

    threads = workload.num_threads(arguments)
    if network.is_compiled(arguments.workload):
        check_compiled(arguments)
        return InferenceSession(arguments.workload, threads=arguments.threads, exact=arguments.exact)
    partition, target = network.partition_of(arguments), Target.parse(arguments.target)
    compiled = network.compile_shown(partition, arguments.records, target, threads, arguments.exact)
    return InferenceSession(compiled.model)


def check_compiled(arguments: argparse.Namespace) -> None:
    """A model that is compiled exists, and takes no options that compiling needs."""
    network.check_model(arguments.workload)
    for option in ("records", "shape"):
        if getattr(arguments, option):
            raise UsageError(
                f"--{option} was given for {arguments.workload}, which is compiled already; give it to "
                "`tilewright compile`"
            )


def random_inputs(session: InferenceSession, model: str) -> dict[str, Any]:
    """Random inputs of the session's types; the model, if it is not compiled, says what range they have."""
    from tilewright.zoo import inputs_for

    known = None if network.is_compiled(model) else network.read_onnx(model)
    return inputs_for(session.model.input_types, known)


def _describe(value: Any) -> str:
    import numpy as np

    if not isinstance(value, np.ndarray):
        return type(value).__name__
    return f"{value.dtype.name}{list(value.shape)}"
