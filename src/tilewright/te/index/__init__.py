"""Index arithmetic: intervals, linear forms, and what an index expression comes to in either.

Numbers are ints, or arrays with one for each candidate of a population or each point of a loop: everything here is
arithmetic that holds for both. Read `interval.py` first, where the rules of division and modulo are, then `linear.py`;
`algebra.py` walks expressions.
"""

from tilewright.te.index.algebra import Algebra
from tilewright.te.index.interval import (
    OPERATIONS,
    Flag,
    Interval,
    Number,
    ceil_div,
    choose,
    combine_intervals,
    interval,
    is_anywhere,
    is_array,
    maximum,
    minimum,
)
from tilewright.te.index.linear import (
    Atom,
    FromMemory,
    Linear,
    LinearForms,
    Operation,
    Ranges,
    atom_bounds,
    bounds,
    clamped,
    combine,
    const,
    format_linear,
    has_large_numbers,
    is_large,
    may_wrap,
    of_atom,
    substitute,
    variables,
)
from tilewright.te.index.ranges import Intervals, index_range, range_outside
from tilewright.te.index.strides import memory_step

__all__ = [
    "OPERATIONS",
    "Algebra",
    "Atom",
    "Flag",
    "FromMemory",
    "Interval",
    "Intervals",
    "Linear",
    "LinearForms",
    "Number",
    "Operation",
    "Ranges",
    "atom_bounds",
    "bounds",
    "ceil_div",
    "choose",
    "clamped",
    "combine",
    "combine_intervals",
    "const",
    "format_linear",
    "has_large_numbers",
    "index_range",
    "interval",
    "is_anywhere",
    "is_array",
    "is_large",
    "maximum",
    "may_wrap",
    "memory_step",
    "minimum",
    "of_atom",
    "range_outside",
    "substitute",
    "variables",
]
