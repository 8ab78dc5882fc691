"""Other ways to compute what an expression says, with fewer operations: expressions from expressions.

An algorithm replaces one tensor of a task by stages that give the same numbers up to rounding. Which is the fastest is
for a search to find out; the schedule step `algorithm` puts one in its place.
"""

from tilewright.te.algorithms.formulas import choices
from tilewright.te.algorithms.registry import ALGORITHMS, Algorithm, algorithms_for, rewritten
from tilewright.te.algorithms.winograd import Rewritten

__all__ = ["ALGORITHMS", "Algorithm", "Rewritten", "algorithms_for", "choices", "rewritten"]
