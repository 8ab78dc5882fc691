"""Workload strings: one canonical form each, and errors that say how to write it."""

from __future__ import annotations

import pytest

from tilewright import UsageError, workloads


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gmm:512x512x512", "gmm:512x512x512"),
        ("c2d:1x28x28x128,128,3x3", "c2d:1x28x28x128,128,3x3,s1,p0"),
        ("c2d:1x28x28x128,128,3x3,p1,s2", "c2d:1x28x28x128,128,3x3,s2,p1"),
        ("c2d:1x28x28x128,128,3x3,g1,d1,s1,p1+bn+relu", "c2d:1x28x28x128,128,3x3,s1,p1+bn+relu"),
        ("c2d:01x28x28x128,128,3x3,d2,g4", "c2d:1x28x28x128,128,3x3,s1,p0,d2,g4"),
    ],
)
def test_canonical_form(text: str, expected: str) -> None:
    assert workloads.canonical(text) == expected
    assert workloads.canonical(expected) == expected


def test_spellings_of_one_workload_are_one_task() -> None:
    a, b = workloads.parse("c2d:1x8x8x4,4,3x3,p1"), workloads.parse("c2d:1x8x8x4,4,3x3,p1,d1,s1")
    assert a.name == b.name == "c2d_1x8x8x4_4_3x3_s1_p1"
    assert a.hash == b.hash


@pytest.mark.parametrize("name", workloads.names())
def test_the_example_in_every_familys_errors_parses(name: str) -> None:
    with pytest.raises(UsageError, match=f"write {name}:.*, for example {name}:") as error:
        workloads.parse(name)
    example = str(error.value).rpartition("for example ")[2]
    assert workloads.canonical(example) == example
    workloads.parse(example)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with one of c1d, .*, got ''; write for example gmm:512x512x512"),
        ("gemm:1x2x3", "begins with one of .*, got 'gemm'"),
        ("gmm", "has sizes after its name, got 'gmm'; write gmm:"),
        ("gmm:", "takes 3 or 4 sizes, got ''"),
        ("gmm:512x512", "takes 3 or 4 sizes, got '512x512'; write gmm:.*, for example gmm:512x512x512"),
        ("gmm:512x512x0", "takes whole numbers above 0, got '512x512x0'"),
        ("gmm:4294967296x1x1", r"workload gmm:4294967296x1x1: dimension 0 of A .* below 2\*\*31"),
        ("gmm:2000000000x2000000000x2000000000", "workload gmm:.* less than 2"),
        ("gmm:512x512x-1", "takes whole numbers above 0"),
        ("gmm:512x512xk", "takes whole numbers above 0"),
        ("gmm:512x512x512,s1", "the options of gmm are none, got 's1'"),
        ("c2d:1x28x28x128,128", "c2d has 3 parts between commas, got 2"),
        ("c2d:1x28x28x128,128,3", "KHxKW of c2d takes 2 sizes, got '3'"),
        ("c2d:1x28x28x128,128,3x3,q1", r"the options of c2d are s and a number \(stride\), .*got 'q1'"),
        ("c2d:1x28x28x128,128,3x3,s", "the options of c2d are .*got 's'"),
        ("c2d:1x28x28x128,128,3x3,", "the options of c2d are .*got ''"),
        ("c2d:1x28x28x128,128,3x3,s0", "the stride is at least 1, got 's0'"),
        ("c2d:1x28x28x128,128,3x3,s1,s2", "an option is given once, got stride again as 's2'"),
        ("c2d:1x28x28x128,128,3x3+gelu", r"the stages to fuse are \+bias, \+bn, \+relu, got \+gelu"),
        ("c2d:1x28x28x128,128,3x3+relu+relu", r"a stage is fused once, got \+relu twice"),
        (
            "c2d:1x2x2x128,128,5x5,p1",
            r"workload c2d:1x2x2x128,128,5x5,s1,p1: a kernel must fit .*height.* 5 of 2 \+ 2\*1",
        ),
        ("c2d:1x8x8x6,8,3x3,g4", "4 groups do not divide the 6 input channels"),
        ("c2d:1x8x8x8,6,3x3,g4", "4 groups do not divide the 6 output channels"),
        ("grp:1x8x8x8,8,3x3", "grp needs groups above 1, got 1"),
        ("dil:1x8x8x8,8,3x3", "dil needs dilation above 1, got 1; write dil:.*d2"),
        ("dep:1x8x8x8,3x3,g4", "the options of dep are .*got 'g4'"),
        ("t2d:1x1x1x8,8,2x2,p1", "must leave an output: along the height"),
        ("sfm:1x2x3+relu", r"sfm takes no fused stages, got \+relu; leave them out"),
    ],
)
def test_errors_state_the_rule_the_value_and_the_remedy(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        workloads.parse(text)
