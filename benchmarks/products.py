"""`python -m benchmarks.products`: matrix products, tuned, next to the faster of OpenBLAS and torch (oneDNN).

Each product is a case on one thread and on two, tuned for up to five minutes. Every finished case is written to a JSON
file at once, and the trials are kept as records: a run that is started again makes only those that are missing, and
times all cases again. Exits with 1 if a case falls short.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from benchmarks import arguments, operators, suite
from benchmarks.machine import describe_machine
from benchmarks.suite import Suite, milliseconds
from benchmarks.table import heading, markdown
from benchmarks.timing import METHOD
from benchmarks.tuned import file_name, tune_workload

PRODUCTS = ("gmm:512x512x512", "gmm:1024x1024x1024", "gmm:4096x4096x4096", "gmm:197x768x3072")
THREADS = (1, 2)
LIBRARIES = ("numpy", "torch")
REQUIRED = 1.0
BUDGET_S = 300.0


@dataclass(frozen=True, slots=True)
class Row(operators.Row):
    """One product on so many threads. The ratio is the time of the faster library by ours."""

    case: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Tune and measure the chosen cases, and print all that the file holds of them."""
    options = _parse(argv)
    cases = [f"{workload} on {threads}" for workload in PRODUCTS for threads in THREADS]
    kept = Suite("case", Row, run, operators.verdict, as_table, as_json, _passed)
    return kept.main([case for case in cases if options.case in case], options)


def run(case: str, options: argparse.Namespace) -> Row:
    """Tune one case, check what it computes against the libraries, and time all in turns."""
    workload, _, threads = case.partition(" on ")
    records = options.records / file_name(case)
    result = tune_workload(
        workload, records, options.trials, int(threads), options.seed, on_progress=operators.report, budget_s=BUDGET_S
    )
    row = operators.time_against(workload, result, options.rounds, LIBRARIES)
    return Row(**{field.name: getattr(row, field.name) for field in fields(row)}, case=case)


def _passed(rows: Sequence[Row]) -> bool:
    return all(row.ratio >= REQUIRED for row in rows)


def as_table(rows: Sequence[Row]) -> str:
    """One line a case, and below them why those that fall short are slower."""
    header = ("product", "threads", "trials", "tuning", "ours", "the faster library", "", "ratio", "must reach")
    cells = [
        [
            row.workload, str(row.threads), str(row.trials), f"{row.tuning_s:.0f} s", milliseconds(row.ours_ms),
            milliseconds(row.peer_ms), row.failure or row.peer, f"{row.ratio:.3f}", f">= {REQUIRED:.2f}",
        ]
        for row in rows
    ]  # fmt: skip
    slower = [operators.why(row) for row in rows if row.ratio < REQUIRED and not row.failure]
    verdict = "pass" if _passed(rows) else "FAIL"
    return "\n".join([heading(describe_machine(), METHOD), markdown(header, cells), "", *slower, "", verdict])


def as_json(rows: Sequence[Row]) -> str:
    """The same as one JSON object; `Suite.read` takes it back."""
    cases = [asdict(row) for row in rows]
    return json.dumps({"machine": describe_machine(), "method": METHOD, "cases": cases}, indent=2)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments.parser("benchmarks.products", __doc__)
    parser.add_argument("--trials", type=arguments.positive, default=256, metavar="N")
    return suite.parse(parser, argv, "products", has_threads=False)


if __name__ == "__main__":
    sys.exit(main())
