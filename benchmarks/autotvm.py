"""`python -m benchmarks.autotvm --table T`: what AutoTVM's ideas give: searches, learning, transfer, templates, logs.

The cases are the twelve convolutions of ResNet-18 and a matrix product. All trials are kept as records, and what was
compared in a file of the repository, by the processor: an interrupted run goes on where it stopped, --report prints
what is there, and tables share the searches that they have in common. The table `logs` is that of
`benchmarks.autotvm_logs`. Exits with 1 if a table does not show what it must, or if something could not be measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import arguments, autotvm_logs
from benchmarks.autotvm_cases import TABLES, Case, Table
from benchmarks.autotvm_outcomes import MEASURED, Outcome, OutcomeFile
from benchmarks.autotvm_report import as_json, as_text, demands_of, draw, rows_of
from benchmarks.autotvm_runs import Laboratory
from tilewright.errors import TilewrightError
from tilewright.measure.local import LocalMeasurer
from tilewright.target import Target

LOGS = "logs"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not known yet of a table, and print it."""
    options = _parse(argv)
    if options.table == LOGS:
        return _logs(options)
    table = TABLES[options.table]
    cases = chosen(table.cases, options.case)
    if not cases:
        print(f"no case matches; they are {', '.join(case.name for case in table.cases)}", file=sys.stderr)
        return 2
    with LocalMeasurer(Target.native(), options.threads) as measurer:
        laboratory = Laboratory(
            options.records,
            OutcomeFile(options.outcomes, options.processor or Target.native().cpu),
            options.trials,
            options.random_trials,
            options.random_seeds,
            options.threads,
            options.rounds,
            measurer,
        )
        outcomes, num_missing = collect(table, cases, laboratory, options.seeds, options.report)
    if not outcomes:
        print("nothing of it was measured yet", file=sys.stderr)
        return 1
    rows = rows_of(outcomes)
    print(as_json(table, outcomes) if options.format == "json" else as_text(table, rows))
    if options.plots is not None:
        print(f"plot: {draw(table, rows, options.plots)}", file=sys.stderr)
    return 0 if num_missing == 0 and all(demand.passed for demand in demands_of(table, rows)) else 1


def chosen(cases: Sequence[Case], text: str) -> list[Case]:
    """The case of that name, or those whose name or workload contains it."""
    named = [case for case in cases if case.name == text]
    return named or [case for case in cases if text in case.name or text in case.workload]


def collect(
    table: Table, cases: Sequence[Case], laboratory: Laboratory, num_seeds: int, only_kept: bool = False
) -> tuple[list[Outcome], int]:
    """All outcomes, and how many are missing; of the first seed first, so that a table is soon there."""
    found: dict[tuple[int, int, int], Outcome] = {}
    num_missing = 0
    for seed in range(num_seeds):
        for number, case in enumerate(cases):
            for place, method in enumerate(table.methods):
                if seed not in laboratory.seeds_of(method, num_seeds):
                    continue
                try:
                    make = laboratory.kept if only_kept else laboratory.outcome
                    outcome = make(table, case, method, seed)
                except TilewrightError as error:
                    print(f"{case.name}, seed {seed}, {method.name}: not run: {error}", file=sys.stderr)
                    outcome = None
                if outcome is None:
                    num_missing += 1
                else:
                    found[number, place, seed] = outcome
    return [found[place] for place in sorted(found)], num_missing


def _logs(options: argparse.Namespace) -> int:
    if not options.logs:
        print("the table logs reads datasets of imported logs; name their folders with --logs", file=sys.stderr)
        return 2
    seeds = ["--seeds", str(options.seeds)]
    return autotvm_logs.main(["--logs", *options.logs, *seeds, "--format", options.format, "--case", options.case])


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.autotvm", __doc__)
    parser.add_argument("--table", choices=(*TABLES, LOGS), required=True)
    parser.add_argument("--trials", type=arguments.positive, default=100, metavar="N")
    parser.add_argument("--random-trials", type=arguments.positive, default=800, metavar="N")
    parser.add_argument("--seeds", type=arguments.positive, default=3, metavar="N")
    parser.add_argument(
        "--random-seeds", type=arguments.positive, default=1, metavar="N", help="random searches of a case"
    )
    parser.add_argument("--threads", type=arguments.positive, default=2, metavar="N")
    parser.add_argument("--rounds", type=arguments.positive, default=15, metavar="N", help="turns of a comparison")
    parser.add_argument("--records", type=Path, default=Path("results/autotvm"), metavar="DIR")
    parser.add_argument("--outcomes", type=Path, default=MEASURED, metavar="FILE", help="where comparisons are kept")
    parser.add_argument("--processor", metavar="NAME", help="of what is reported (default: this one)")
    parser.add_argument("--report", action="store_true", help="measure nothing: print what was kept")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw the curves to a file here; needs matplotlib")
    parser.add_argument("--logs", nargs="+", default=[], metavar="FOLDER", help="datasets of imported logs")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
