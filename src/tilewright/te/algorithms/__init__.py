"""Other ways to compute what an expression says, with fewer operations: expressions from expressions.

An algorithm replaces one tensor of a task by stages that give the same numbers, most of them up to rounding. Which is
the fastest is for a search to find out; the schedule step `algorithm` puts one in its place.
"""

from tilewright.te.algorithms.algorithm import Algorithm, Rewritten
from tilewright.te.algorithms.formulas import choices
from tilewright.te.algorithms.registry import ALGORITHMS, algorithms_for, is_exact, rewritten

__all__ = ["ALGORITHMS", "Algorithm", "Rewritten", "algorithms_for", "choices", "is_exact", "rewritten"]
