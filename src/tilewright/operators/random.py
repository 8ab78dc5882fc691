"""Operators that draw random numbers: no kernel computes them, and nobody may take two runs of them for one."""

from __future__ import annotations

from tilewright.operators.registry import Facts, know

know(
    *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    facts=Facts(random=True),
)
