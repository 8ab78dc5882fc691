"""The model without data prefers what is known to be faster."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.cost_model.analytical import AnalyticalModel, score_schedule
from tilewright.features import ESTIMATE, FEATURE_NAMES, Hardware, roofline, statement_features
from tilewright.schedule import Extent, Schedule
from tilewright.target import Target
from tilewright.te import Task

HARDWARE = Hardware.from_target(Target.parse("llvm -mcpu=haswell -num-cores=2 -l2=1M -l3=32M"))


def _gemm(rows: Extent, columns: Extent, block: Extent, num_panels: Extent = 1) -> Schedule:
    """512x512x512 in register tiles; the parallel loop runs over groups of panels of columns."""
    A, B = te.placeholder((512, 512), name="A"), te.placeholder((512, 512), name="B")
    k = te.reduce_axis(512, name="k")
    C = te.compute((512, 512), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = Schedule(Task([A, B], C, "gemm"))
    i0, i1 = s["C"].split("i", rows)
    j0, j1, j2 = s["C"].split("j", [num_panels, columns])
    k0, k1 = s["C"].split("k", block)
    s["C"].reorder(j0, j1, k0, i0, k1, i1, j2)
    s["C"].parallel(j0)
    s["C"].unroll(i1)
    s["C"].vectorize(j2)
    return s


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        pytest.param(_gemm(4, 1, 128), _gemm(4, 16, 128), id="vectors"),
        pytest.param(_gemm(1, 8, 128), _gemm(6, 16, 128), id="enough sums at a time"),
        pytest.param(_gemm(16, 32, 128), _gemm(6, 16, 128), id="sums that fit the registers"),
        pytest.param(_gemm(4, 12, 128), _gemm(4, 16, 128), id="whole vectors"),
        pytest.param(_gemm(4, 16, 1), _gemm(4, 16, 128), id="long runs of the reduction"),
        pytest.param(_gemm(4, 16, 128, 32), _gemm(4, 16, 128), id="work for all threads"),
    ],
)
def test_better_schedules_have_higher_scores(worse: Schedule, better: Schedule) -> None:
    assert score_schedule(better, 1, HARDWARE)[0] > score_schedule(worse, 1, HARDWARE)[0]


def test_statement_features_hold_the_estimate() -> None:
    s = _gemm(np.array([1, 4, 6]), np.array([8, 16, 16]), np.array([64, 128, 512]))
    estimate = statement_features(s, 3, HARDWARE).values[:, :, [FEATURE_NAMES.index(ESTIMATE)]]
    np.testing.assert_allclose(AnalyticalModel().score(estimate), score_schedule(s, 3, HARDWARE), rtol=1e-5)


def test_roofline_has_an_array_for_each_part() -> None:
    bounds = roofline(_gemm(np.array([4, 6]), 16, 128), 2, HARDWARE)
    assert {array.shape for array in bounds.values()} == {(1, 2)}
    # 512^3 multiply-adds in vectors of 8, two a cycle; 86 tiles of 6 rows are 516.
    np.testing.assert_allclose(bounds["arithmetic"], [[512**3 / 16, 512**2 * 516 / 16]])
