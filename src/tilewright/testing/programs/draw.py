"""The random choices that a program is made from."""

from __future__ import annotations

import numpy as np

_EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 16, 17, 24, 31, 33, 49, 64, 70, 100, 131)
FLOATS = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int32", "int64")


class Draw:
    """The random choices of one program; `most` bounds its extents."""

    def __init__(self, rng: np.random.Generator, most: int) -> None:
        self.rng = rng
        self.most = most

    def extent(self, most: int = 200, least: int = 1) -> int:
        fitting = [e for e in _EXTENTS if least <= e <= min(most, self.most)]
        return self.pick(*fitting) if fitting else least

    def pick(self, *choices: int) -> int:
        return choices[int(self.rng.integers(len(choices)))]

    def name(self, *choices: str) -> str:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def float_type(self) -> str:
        return self.name(*FLOATS)
