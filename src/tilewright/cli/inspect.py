"""`tilewright inspect WORKLOAD|MODEL`: what it computes, the sketches of its space, its best program, or its tasks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.cli import network, profile, workload
from tilewright.cli.inspect_compiled import describe_file
from tilewright.cli.inspect_template import describe_knob, describe_template
from tilewright.cli.open_network import describe_open
from tilewright.cli.run import check_compiled, print_profile, random_inputs, session_of
from tilewright.errors import OpenDimensionsError, UsageError

if TYPE_CHECKING:
    from tilewright.partition import Partition
    from tilewright.schedule import Schedule, Stage
    from tilewright.space import Sketch, SpaceOptions
    from tilewright.te import Task
    from tilewright.tuning.task_scheduler import WeightedTask

# Enough candidates to see which extents differ.
_NUM_SAMPLES = 64
_OF_WORKLOADS = ("sketches", "template", "ir", "llvm", "asm")


def add_parser(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the program's parser."""
    parser = subcommands.add_parser(
        "inspect",
        help="look into a workload: its computation, its space, its code; or into a model: its tasks",
        description="Print the computation of a workload and, as asked for, its space and the code of one program: "
        "of the best recorded one with --records, otherwise of the best by the cost model that ships. Of a model, "
        "print how many kernels it takes and, with --tasks, which tasks they are; of one that leaves dimensions open, "
        "its inputs and outputs, and how to give the sizes.",
    )
    workload.add_arguments(parser)
    network.add_shape_argument(parser)
    network.add_exact_argument(parser)
    parser.add_argument("--tasks", action="store_true", help="the tasks of a model, each with how often it is run")
    profile.add_arguments(parser)
    parser.add_argument(
        "--template",
        metavar="FILE.py:NAME",
        help="the space of a template, a function that FILE.py decorates with @tw.template, in place of the derived "
        "one: its sketches, knobs, and a program of each. The file is run",
    )
    parser.add_argument("--sketches", action="store_true", help="the sketches, each with its loop nest and knobs")
    parser.add_argument("--ir", action="store_true", help="the schedule and the loop nest that it is lowered to")
    parser.add_argument("--llvm", action="store_true", help="the LLVM IR that code generation starts from")
    parser.add_argument("--asm", action="store_true", help="the assembly")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the parts that are asked for."""
    from tilewright import workloads
    from tilewright.space import SpaceOptions
    from tilewright.target import Target

    profile.check_arguments(arguments)
    if arguments.format == "json":
        _refuse(arguments, ("tasks",), "is to be profiled as JSON; leave out one of both")
    if network.is_compiled(arguments.workload):
        _print_compiled(arguments)
        return
    if network.is_network(arguments.workload):
        _print_network(arguments)
        return
    for option in ("tasks", "profile"):
        if getattr(arguments, option):
            raise UsageError(
                f"--{option} is for models, such as model.onnx or zoo:resnet18; {arguments.workload} is one task"
            )
    task = workloads.parse(arguments.workload)
    print(describe(task))
    sketches: list[Sketch] = []
    if arguments.sketches or arguments.template:
        target, threads = Target.parse(arguments.target), workload.num_threads(arguments)
        options = SpaceOptions(target, threads, exact=arguments.exact)
        sketches = _print_space(arguments.template, task, options)
    if arguments.ir or arguments.llvm or arguments.asm:
        _print_program(arguments, sketches if arguments.template else [])


def _print_space(template: str | None, task: Task, options: SpaceOptions) -> list[Sketch]:
    from tilewright.space import find_template, space_of

    if template is None:
        sketches = space_of(task, options)
        print("".join(f"\n{describe_sketch(sketch)}\n" for sketch in sketches), end="")
        return sketches
    found = find_template(template)
    sketches = found.sketches(task, options)
    print(f"\n{describe_template(found, sketches)}")
    return sketches


def _print_compiled(arguments: argparse.Namespace) -> None:
    _refuse(
        arguments, ("tasks", *_OF_WORKLOADS), "is compiled, and holds no more than its code; inspect its model.onnx"
    )
    check_compiled(arguments)
    if arguments.format != "json":
        print(describe_file(arguments.workload))
    if arguments.profile:
        _print_profile(arguments)


def _refuse(arguments: argparse.Namespace, options: Sequence[str], why: str) -> None:
    for option in options:
        if getattr(arguments, option):
            raise UsageError(f"--{option} was given, but {arguments.workload} {why}")


def _print_profile(arguments: argparse.Namespace) -> None:
    session = session_of(arguments)
    print_profile(arguments, session, random_inputs(session, arguments.workload))


def _print_network(arguments: argparse.Namespace) -> None:
    _refuse(arguments, _OF_WORKLOADS, "is a model, not one workload; use --tasks")
    if arguments.records and not arguments.profile:
        raise UsageError(f"--records was given, but of {arguments.workload} nothing is run; add --profile")
    try:
        partition = network.partition_of(arguments)
    except OpenDimensionsError:
        if arguments.profile:
            raise
        print(describe_open(arguments.workload, network.parse_shapes(arguments.shape)))
        return
    if arguments.format != "json":
        print(describe_network(partition))
    if arguments.tasks:
        print("\n" + "\n".join(describe_tasks(partition.tasks)))
    if arguments.profile:
        _print_profile(arguments)


def describe_network(partition: Partition) -> str:
    """What goes in and out, how many kernels it takes, and what has none."""
    from tilewright.partition import Fallback, View

    graph, tasks = partition.graph, partition.tasks
    fallbacks = [part for part in partition.parts if isinstance(part, Fallback)]
    num_views = sum(isinstance(part, View) for part in partition.parts)
    lines = [f"network {graph.name}"]
    for what, names in (("input", graph.inputs), ("output", graph.outputs)):
        lines += [f"{what} {name}: {_describe_type(partition, name)}" for name in names]
    lines.append(f"kernels {len(partition.kernels)}, of {len(tasks)} tasks; views {num_views}")
    lines.append(f"flop {sum(item.weight * item.task.flop for item in tasks):.4g}")
    lines.append(f"fallbacks {len(fallbacks)}" + (", by the reference evaluator of ONNX" if fallbacks else ""))
    lines += [f"  {part.node}: {part.reason}" for part in fallbacks]
    return "\n".join(lines)


def _describe_type(partition: Partition, name: str) -> str:
    known = partition.graph.types.get(name)
    return "known when it runs" if known is None else f"{known.dtype}{list(known.shape)}"


def describe_tasks(tasks: Sequence[WeightedTask]) -> list[str]:
    """A line for each task: how often it is run, its work, its beginning of the hash, and what it computes of what."""
    lines = [f"{'runs':>4}  {'Mflop':>9}  {'hash':<8}  task"]
    for item in tasks:
        task = item.task
        shapes = ", ".join(f"{tensor.name}{list(tensor.shape)}" for tensor in task.inputs)
        results = ", ".join(str(list(tensor.shape)) for tensor in task.outputs)
        lines.append(f"{item.weight:>4}  {task.flop / 1e6:>9.2f}  {task.hash[:8]}  {task.name}({shapes}) -> {results}")
    return lines


def describe(task: Task) -> str:
    """The inputs, each stage, and how much work it is."""
    lines = [f"task {task.name}", f"hash {task.hash}", f"flop {task.flop:.4g}", "inputs"]
    lines += [f"  {tensor}" for tensor in task.inputs]
    lines.append("stages")
    lines += [f"  {tensor}" for tensor in task.stages]
    return "\n".join(lines)


def describe_sketch(sketch: Sketch) -> str:
    """How large it is, the loop nest, and the knobs with an example of each."""
    lines = [f"{sketch.name}: {sketch.cardinality:.3g} candidates"]
    lines += [f"  {line}" for line in structure(sketch)]
    lines.append("  knobs")
    width = max((len(knob.name) for knob in sketch.knobs), default=0)
    lines += [f"    {knob.name:<{width}}  {describe_knob(knob)}" for knob in sketch.knobs]
    return "\n".join(lines)


def structure(sketch: Sketch) -> list[str]:
    """The lines of the loop nest; a loop whose extent depends on the candidate shows `?` for it."""
    import numpy as np

    schedule = sketch.sample(np.random.default_rng(0), _NUM_SAMPLES).schedule
    lines: list[str] = []
    for stage in schedule.active_stages:
        if stage.attach_loop is None:
            _add_stage(schedule, stage, 0, lines)
    return lines


def _add_stage(schedule: Schedule, stage: Stage, depth: int, lines: list[str]) -> None:
    import numpy as np

    from tilewright.schedule import SERIAL

    for loop in stage.leaves:
        sizes = np.unique(schedule.extents[loop])
        extent = str(sizes[0]) if len(sizes) == 1 else "?"
        keyword = "for" if loop.annotation == SERIAL else loop.annotation
        lines.append(f"{'  ' * depth}{keyword} {loop.name} in range({extent}):")
        depth += 1
        for attached in schedule.attached_at(loop):
            _add_stage(schedule, attached, depth, lines)
    axes = ", ".join(axis.name for axis in stage.axes)
    sources = dict.fromkeys(read.tensor.name for read in stage.reads)
    lines.append(f"{'  ' * depth}{stage.name}[{axes}] from {', '.join(sources)}")


def _print_program(arguments: argparse.Namespace, sketches: Sequence[Sketch]) -> None:
    from tilewright.codegen import compile_schedule
    from tilewright.codegen.native import assembly, optimized_ir
    from tilewright.ir import format_nest

    program = workload.choose(arguments, sketches)
    schedule = program.schedule
    compiled = compile_schedule(schedule, program.target, program.threads)
    print(f"\n# {program.origin}")
    if arguments.ir:
        nests = [*(pack.nest for pack in compiled.module.packs), compiled.module.kernel]
        print(f"{program.trace}\n\n# schedule\n{schedule}\n\n# loop nest")
        print("\n\n".join(map(format_nest, nests)))
    if arguments.llvm:
        print(f"\n; LLVM IR\n{optimized_ir(compiled.generated.llvm_ir, program.target)}")
    if arguments.asm:
        print(f"\n# assembly\n{assembly(compiled.generated.llvm_ir, program.target)}")
