"""ONNX's own node cases, each as one compiled kernel.

`not_compiled.txt` lists the cases that have none, with the reason. After a change that compiles more of them, write it
anew with `python -m tests.operators.test_onnx_cases`.
"""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

from onnx.backend.test.loader import load_model_tests

from tilewright.operators import NotCompilableError
from tilewright.testing.operators import assert_outputs, run_model

NOT_COMPILED = Path(__file__).with_name("not_compiled.txt")
LEAST_COMPILED = 1200


@cache
def outcomes() -> tuple[int, dict[str, str], dict[str, str]]:
    """How many cases compile and agree; the reasons of those that do not compile; the errors of those that disagree."""
    num_good = 0
    reasons: dict[str, str] = {}
    errors: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of divisions by zero that the cases are about
        for case in load_model_tests(kind="node"):
            try:
                for inputs, expected in case.data_sets:
                    assert_outputs(run_model(case.model, inputs), expected, case.rtol, case.atol)
                num_good += 1
            except NotCompilableError as reason:
                reasons[case.name] = str(reason)
            except AssertionError as error:
                errors[case.name] = str(error)
    return num_good, reasons, errors


def listing(reasons: dict[str, str]) -> str:
    return "".join(f"{name}: {reason}\n" for name, reason in sorted(reasons.items()))


def test_compiled_cases_agree_with_onnx() -> None:
    num_good, reasons, errors = outcomes()
    print(f"{num_good} of ONNX's node cases compiled, {len(reasons)} not")
    assert errors == {}
    assert num_good >= LEAST_COMPILED


def test_cases_that_are_not_compiled_are_those_listed() -> None:
    _, reasons, _ = outcomes()
    expected = dict(line.split(": ", 1) for line in NOT_COMPILED.read_text().splitlines())
    assert {name: reasons[name] for name in reasons if reasons[name] != expected.get(name)} == {}, "no longer compiled"
    assert sorted(set(expected) - set(reasons)) == [], "compiled now; write not_compiled.txt anew"


if __name__ == "__main__":
    NOT_COMPILED.write_text(listing(outcomes()[1]))
    print(f"{outcomes()[0]} cases compiled, {len(outcomes()[1])} not, {len(outcomes()[2])} wrong: {outcomes()[2]}")
