"""A comparison is only fair if every way of every library computes what the workload computes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import workloads
from tilewright.errors import UsageError
from tilewright.peers import library_threads, peers_of
from tilewright.te import evaluate, random_inputs

WORKLOADS = [
    "c1d:2x9x3,4,3,s2,p1",
    "c1d:1x9x3,4,1,s2,p0+bias+relu",
    "c2d:2x7x6x3,8,3x3,s1,p1",
    "c2d:1x7x6x3,8,3x3,s2,p1+bias+bn+relu",
    "c3d:1x4x5x6x3,8,3x3x3,s1,p1",
    "c2d:1x7x6x3,8,3x3,s1,p1+relu+bias",
    "gmm:8x7x6",
    "gmm:3x8x7x6",
    "gmm:8x7x6+bias+relu",
    "grp:1x6x6x8,12,3x3,s1,p1,g4",
    "grp:1x6x6x8,12,3x3,s1,p1,g4+bn",
    "dil:1x9x9x3,4,3x3,s1,p1,d2",
    "dep:1x7x6x16,3x3,s2,p1",
    "t2d:1x4x4x6,5,4x4,s2,p1",
    "t2d:1x4x4x6,5,4x4,s2,p1+bn+relu",
    "cap:1x6x6x3,2,3x3,s2,p1",
    "nrm:2x9x8",
    "sfm:2x9x8",
    "convlayer:1x6x6x4,8,3x3,s1,p1",
    "tbg:1x8x3x4",
]


def results(workload: str, library: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    task = workloads.parse(workload)
    arrays = random_inputs(task, np.random.default_rng(0))
    given = {tensor.name: array for tensor, array in zip(task.inputs, arrays, strict=True)}
    with library_threads(1, [library]):
        found = {name: peer.result() for name, peer in peers_of(workload, given, [library]).items()}
    return evaluate(task, *arrays)[0], found


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_way_of_torch_computes_the_workload(workload: str) -> None:
    expected, found = results(workload, "torch")
    assert found
    for name, result in found.items():
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("workload", ["gmm:8x7x6", "gmm:3x8x7x6", "nrm:2x9x8", "sfm:2x9x8", "tbg:1x8x3x4"])
def test_numpy_computes_the_workload(workload: str) -> None:
    expected, found = results(workload, "numpy")
    assert list(found) == ["numpy"]
    np.testing.assert_allclose(found["numpy"], expected, rtol=1e-4, atol=1e-5)


def test_a_library_without_the_operator_gives_none() -> None:
    assert peers_of("c2d:1x7x6x3,8,3x3,s1,p1", {}, ["numpy"]) == {}


def test_an_unknown_library_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="one of numpy, torch, got 'tvm'"):
        peers_of("gmm:8x8x8", {}, ["tvm"])
