"""`python -m benchmarks.cost_models`: how well cost models rank, on the same data and the same splits.

Table 1: networks that were held out. Table 2: losses and networks, as TLP's ablation. Table 3: a new device with a
share of its labels, alone and with others; on logs of other tools, too, where a dataset of those is given with --logs.

What each training gave is written to a JSON file in --results, and the models beside it: a run that was stopped goes
on where it was. A model is a name of `tilewright model list`, with options if there are any: tlp:width=128,loss=mse.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import arguments, cost_model_cases, cost_model_plots, cost_model_report
from benchmarks.cost_model_cases import FINE_TUNED, HOLD_OUT, LOCAL, POOLED, SHARES, Case, Plan
from benchmarks.cost_model_runs import Laboratory, Outcome, Settings, make
from benchmarks.machine import describe_machine
from tilewright.errors import UsageError
from tilewright.records.dataset import Corpus

QUICK_EPOCHS, QUICK_PROGRAMS, QUICK_SHARES = 3, 16, (0.05, 1.0)
LOG_PROGRAMS = 128


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is not there yet of the chosen tables, and print them."""
    options = _parse(argv)
    try:
        return run(options)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2


def run(options: argparse.Namespace) -> int:
    """The chosen tables."""
    settings = Settings(QUICK_EPOCHS if options.quick and options.epochs is None else options.epochs, options.threads)
    for spec in options.models or ():
        make(spec, 0, settings)  # a wrong one is told of before the work begins
    results: list[tuple[Case, Outcome]] = []
    laboratories = []
    devices: dict[str, str] = {}
    for folders, is_log in ((options.data, False), (options.logs, True)):
        if not folders:
            continue
        corpus = Corpus.open(folders)
        laboratory = Laboratory(corpus, settings, options.results)
        cases = [case for case in chosen(corpus, options, is_log) if options.case in " ".join((*case.row, case.column))]
        own = [(case, laboratory.outcome(case)) for case in cases]
        results += own
        laboratories.append((laboratory, own))
        devices |= {d.name: d.processor or f"log of {d.tool}" for d in corpus.devices}
    if not results:
        print("no case is chosen; give --data, and --logs for the logs of table 3", file=sys.stderr)
        return 2
    if options.plots is not None:
        for laboratory, own in laboratories:
            for path in cost_model_plots.draw(own, laboratory, options.plots):
                print(f"plot: {path}", file=sys.stderr)
    machine = describe_machine(("torch", "xgboost-cpu"))
    if options.format == "json":
        print(cost_model_report.as_json(results, machine))
    else:
        print(cost_model_report.as_table(results, machine, devices))
    return 0


def chosen(corpus: Corpus, options: argparse.Namespace, is_log: bool) -> list[Case]:
    """The cases of the chosen tables on a corpus."""
    programs = options.programs
    if programs is None and options.quick:
        programs = QUICK_PROGRAMS
    if programs is None and is_log:
        programs = LOG_PROGRAMS
    plan = Plan(
        models=None if options.models is None else tuple(options.models),
        seeds=options.seeds,
        hold_out=tuple(options.hold_out),
        device=options.device,
        new_devices=None if options.new_devices is None else tuple(options.new_devices),
        is_pooled=options.pooled,
        shares=QUICK_SHARES if options.quick else SHARES,
        programs=programs,
        ways=tuple(options.ways),
    )
    tables = options.table or [1, 2, 3]
    if is_log:
        return list(cost_model_cases.new_devices_of_logs(corpus, plan)) if 3 in tables else []
    cases: list[Case] = []
    for table in tables:
        if table == 3:
            cases += cost_model_cases.new_devices(corpus, plan)
        else:
            cases += cost_model_cases.held_out_networks(corpus, plan, table)
    return cases


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.cost_models", __doc__)
    parser.add_argument("--table", type=int, action="append", choices=(1, 2, 3), help="default: all")
    parser.add_argument("--data", nargs="+", default=[], metavar="FOLDER", help="datasets that tilewright measured")
    parser.add_argument("--logs", nargs="+", default=[], metavar="FOLDER", help="datasets of logs of other tools")
    parser.add_argument("--models", nargs="+", metavar="NAME[:OPTIONS]", help="default: those of each table")
    parser.add_argument("--seeds", type=arguments.positive, default=1, metavar="N")
    parser.add_argument("--epochs", type=arguments.positive, metavar="N", help="of networks (default: what each has)")
    parser.add_argument(
        "--programs", type=arguments.positive, metavar="N", help="of a task on a device, at most, to learn from"
    )
    parser.add_argument("--hold-out", nargs="+", default=list(HOLD_OUT), metavar="NETWORK")
    parser.add_argument("--device", metavar="D", help="of tables 1 and 2 (default: the one with most tasks, or all)")
    parser.add_argument("--new-devices", nargs="+", metavar="D", help="of table 3 (default: all but that one)")
    parser.add_argument(
        "--ways",
        nargs="+",
        default=[POOLED],
        choices=(POOLED, FINE_TUNED, LOCAL),
        help="table 3: learn from a device and others at once, or from the others first, and then go on with the "
        "device's labels or learn what is wrong there (default: pooled)",
    )
    parser.add_argument("--pooled", action="store_true", help="tables 1 and 2: learn from all devices, and rate on all")
    parser.add_argument("--threads", type=arguments.positive, default=1, metavar="N", help="of training")
    parser.add_argument("--quick", action="store_true", help="few programs, epochs and shares: whether it works")
    parser.add_argument("--results", type=Path, default=Path("results/cost_models"), metavar="DIR")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw to this folder; needs matplotlib")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
