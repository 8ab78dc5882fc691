"""What a test of a kernel needs: a NumPy reference, random inputs, and a comparison with the right tolerances."""

from tilewright.testing.arrays import assert_matches, random_inputs, reduction_size
from tilewright.testing.reference import evaluate

__all__ = ["assert_matches", "evaluate", "random_inputs", "reduction_size"]
