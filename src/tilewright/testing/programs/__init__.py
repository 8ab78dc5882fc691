"""Random small tasks of many kinds, with awkward extents: what schedules are tried on.

Every family is a function from random draws to a task. Float values that are compared, rounded or cast to integers
come straight from an input, so that no legal order of operations can change the answer by more than rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.te import Task
from tilewright.testing.programs import elementwise, expressions, movement, networks, products, reductions
from tilewright.testing.programs.draw import Draw

Family = Callable[[Draw], Task]

FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        elementwise.elementwise,
        elementwise.functions,
        elementwise.casts,
        elementwise.integers,
        elementwise.logic,
        products.gemm,
        products.batched_matmul,
        products.quantized,
        products.conv1d,
        products.conv2d,
        products.depthwise,
        products.conv_transpose,
        reductions.pooling,
        reductions.softmax,
        reductions.layer_norm,
        reductions.arg_reduce,
        reductions.reductions,
        reductions.scalar,
        movement.gather,
        movement.concat,
        movement.padding,
        movement.stencil,
        movement.reshape,
        movement.outputs,
        movement.diamond,
        networks.einsum,
        networks.gated,
        networks.network,
        expressions.expressions,
    )
}


def random_task(family: str, rng: np.random.Generator, max_points: int = 50_000) -> Task:
    """A random member of the family whose stages run over at most `max_points` points together."""
    most = 200
    while True:
        task = FAMILIES[family](Draw(rng, most))
        if task.num_points <= max_points or most <= 1:
            return task
        most = most * 4 // 5
