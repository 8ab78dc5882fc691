"""Circular and hyperbolic functions and their inverses."""

from __future__ import annotations

from tilewright import te
from tilewright.operators.elementwise import elementwise, elementwise_operator

for _function in (
    *(te.sin, te.cos, te.tan, te.asin, te.acos, te.atan),
    *(te.sinh, te.cosh, te.asinh, te.acosh, te.atanh),
):
    elementwise_operator(_function.__name__.capitalize())(elementwise(_function))
