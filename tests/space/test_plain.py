"""The plain program, which every task has."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.space import plain_schedule
from tilewright.target import Target
from tilewright.testing.check import check_program
from tilewright.testing.programs import FAMILIES, random_task


@pytest.mark.parametrize("family", FAMILIES)
def test_a_plain_kernel_agrees_with_numpy(family: str) -> None:
    rng = np.random.default_rng(0)
    for threads in (1, 2):
        task = random_task(family, rng)
        check_program(task, plain_schedule(task, Target.native(), threads), rng, threads)
