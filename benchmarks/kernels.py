"""`python -m benchmarks.kernels`: every kernel next to its peers, in one run. Exits with 1 if a case falls short."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.cases import all_cases
from benchmarks.machine import describe_machine
from benchmarks.results import Result, run_case
from benchmarks.schedules import choose_target
from benchmarks.table import all_passed, format_json, format_table
from benchmarks.timing import Plan

QUICK = Plan(rounds=5, builds=3)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen cases and print them."""
    arguments = _parse(argv)
    choose_target(arguments.target)
    default = QUICK if arguments.quick else Plan()
    plan = Plan(arguments.rounds or default.rounds, default.builds)
    chosen = [c for c in all_cases() if arguments.case in c.name and arguments.threads in (None, c.threads)]
    if not chosen:
        print("no case matches; run without --case and --threads to see all", file=sys.stderr)
        return 2
    results: list[Result] = []
    for case in chosen:
        print(f"measuring {case.name}, {case.threads} threads", file=sys.stderr)
        results.append(run_case(case, plan))
    print_results = format_json if arguments.format == "json" else format_table
    print(print_results(describe_machine(), results))
    return 0 if all_passed(results) else 1


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--case", default="", metavar="SUBSTRING", help="only the cases whose name contains it")
    parser.add_argument("--threads", type=int, metavar="N", help="only the cases with N threads")
    parser.add_argument(
        "--target",
        default="native",
        metavar="T",
        help="build our kernels for T, such as haswell; limit the peers alike by OPENBLAS_CORETYPE=Haswell "
        "ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2",
    )
    parser.add_argument("--rounds", type=_positive, metavar="N", help=f"default: {Plan().rounds}")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK.rounds} rounds: to see that it works")
    return parser.parse_args(argv)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value


if __name__ == "__main__":
    sys.exit(main())
