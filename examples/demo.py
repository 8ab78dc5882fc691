"""`make demo`: tunes a network for a minute, and shows its speed before, after, and next to onnxruntime's.

The network is built here with random weights, so nothing is downloaded; `--model model.onnx` takes another. Its records
are kept only while the demo runs. Exits with 1 if outputs differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright.cli.comparison import aligned, check_agreement
from tilewright.cli.tune import parse_time
from tilewright.cli.tune_network import Display
from tilewright.errors import TilewrightError
from tilewright.network import compile_partition, name_of, partition_network, read_network
from tilewright.partition import Partition
from tilewright.peers import NetworkPeer, PeerError, network_peer, settle_s, take_turns
from tilewright.target import default_threads
from tilewright.tuning.task_scheduler import Network, NetworksResult, TaskScheduler
from tilewright.zoo import inputs_for

LIBRARY = "onnxruntime"
ROUNDS = 12

Call = Callable[[], Sequence[Any]]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="demo", description="Tune a network, and show its speed before and after.")
    parser.add_argument("--model", default="zoo:resnet18", help="model.onnx, or a network as %(default)s (the default)")
    parser.add_argument("--budget", default="60s", metavar="TIME", help="for tuning (default: %(default)s)")
    options = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="tilewright-demo-") as folder:
            demonstrate(options.model, options.budget, str(Path(folder, "records.jsonl")))
    except TilewrightError as error:
        print(f"demo: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted; nothing is left behind", file=sys.stderr)
        return 130
    return 0


def demonstrate(model: str, budget: str, records: str) -> None:
    """Compile the network without a trial, tune it, compile it again, and time both and onnxruntime in turns."""
    budget_s = parse_time(budget)
    target, threads = tw.Target.native(), default_threads()
    proto = read_network(model)
    partition = partition_network(proto)
    gflop = sum(item.weight * item.task.flop for item in partition.tasks) / 1e9
    print(f"{model}: {gflop:.3g} GFLOP in {len(partition.tasks)} different tasks; {threads} threads of {target.cpu}")
    before = tw.InferenceSession(compile_partition(partition, None, target, threads).model)
    print(f"tuning for {budget}: each task's candidates are compiled, run, and checked", flush=True)
    tuned = tune(model, partition, target, threads, budget_s, records)
    after = tw.InferenceSession(compile_partition(partition, records, target, threads).model)

    inputs = inputs_for(before.model.input_types, proto)
    calls: dict[str, Call] = {
        "before, with zero trials": partial(before.run, None, inputs),
        f"after {tuned.num_trials} trials": partial(after.run, None, inputs),
    }
    missing = ""
    try:
        calls[LIBRARY] = partial(loaded(proto, threads, inputs).run, inputs)
    except PeerError as error:
        missing = str(error)
    check([output.name for output in after.get_outputs()], calls)
    print(f"\n{table(calls, threads)}\n\n{missing or 'All outputs agree.'}")
    print(f"To keep what tuning finds: tilewright tune {model} --budget 5m -o {name_of(model)}.tw")


def tune(
    model: str, partition: Partition, target: tw.Target, threads: int, budget_s: float | None, records: str
) -> NetworksResult:
    """Tune the tasks of the network, with progress on stderr."""
    scheduler = TaskScheduler([Network(model, partition.tasks)], target=target, threads=threads)
    display = Display()
    try:
        return scheduler.tune(records=records, budget_s=budget_s, on_progress=display.show)
    finally:
        display.finish()


def loaded(proto: Any, threads: int, inputs: Mapping[str, Any]) -> NetworkPeer:
    """The network in onnxruntime, which has run it once."""
    peer = network_peer(LIBRARY, proto, threads)
    peer.run(inputs)
    return peer


def check(outputs: Sequence[str], calls: Mapping[str, Call]) -> None:
    """All compute what the first does."""
    (_, first), *others = ((name, call()) for name, call in calls.items())
    for name, results in others:
        for output, expected, result in zip(outputs, first, results, strict=True):
            check_agreement(name, output, expected, result)


def table(calls: Mapping[str, Call], threads: int) -> str:
    """The latency of each, and how many times as fast as the first it is."""
    timings = take_turns(calls, ROUNDS, settle_s([LIBRARY] if LIBRARY in calls else [], threads))
    medians_s = {name: timing.median_s for name, timing in timings.items()}
    first_s = next(iter(medians_s.values()))
    lines = [["", "latency", "speed"]]
    lines += [[name, f"{s * 1e3:.4g} ms", f"{first_s / s:.2f}x"] for name, s in medians_s.items()]
    return aligned(lines)


if __name__ == "__main__":
    sys.exit(main())
