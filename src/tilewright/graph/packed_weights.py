"""Weights of few bits as the operator MatMulPacked of our own has them: several in a byte, [depth, columns]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.operators import OWN, Node

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class PackedWeights:
    """Unsigned weights, one an element, that stand for (value - zero) * scale.

    There is a scale for each block along the depth and each column, and a zero point, unless that is in the middle.
    """

    values: npt.NDArray[np.uint8]
    """[depth, columns]."""
    scales: Array
    """[blocks, columns], as are the zeros."""
    zeros: Array | None
    bits: int
    block_size: int

    @property
    def operands(self) -> list[Array]:
        """What follows the data among the operands of MatMulPacked."""
        middle = 1 << (self.bits - 1)
        zeros = [] if self.zeros is None or np.all(self.zeros == middle) else [self.zeros]
        return [_packed(self.values, self.bits), self.scales, *zeros]

    @property
    def floats(self) -> npt.NDArray[np.float32]:
        """The weights that they stand for."""
        zeros = np.float32(1 << (self.bits - 1)) if self.zeros is None else self._along_depth(self.zeros)
        return np.asarray((self.values.astype(np.float32) - zeros) * self._along_depth(self.scales), np.float32)

    def _along_depth(self, of_blocks: Array) -> npt.NDArray[np.float32]:
        return np.repeat(of_blocks.astype(np.float32), self.block_size, axis=0)[: len(self.values)]


def packed_product(data: str, operands: list[str], weights: PackedWeights, output: str, like: Node) -> Node:
    """The node that multiplies data by the weights whose `operands` have these names."""
    attributes = {"bits": weights.bits, "block_size": weights.block_size}
    return Node("MatMulPacked", (data, *operands), (output,), attributes, like.name, OWN)


def _packed(values: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Neighbours along the first axis in one byte, the first in its lowest bits.

    >>> _packed(np.array([[1, 2], [3, 4], [5, 6]], np.uint8), 4)
    array([[49, 66],
           [ 5,  6]], dtype=uint8)
    """
    num_in_byte = 8 // bits
    filled = np.pad(values, ((0, -len(values) % num_in_byte), (0, 0)))
    packed = np.zeros((len(filled) // num_in_byte, values.shape[1]), np.uint8)
    for n in range(num_in_byte):
        packed |= filled[n::num_in_byte] << np.uint8(n * bits)
    return packed
