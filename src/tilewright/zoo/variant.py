"""`Variant`: the sizes in which a network of the zoo can be built."""

from __future__ import annotations

from dataclasses import dataclass

_MULTIPLE = 8


@dataclass(frozen=True, slots=True)
class Variant:
    """`size` is the side of an image or the number of tokens; `width` multiplies the channels."""

    batch: int
    size: int
    width: float = 1.0

    def channels(self, num: int) -> int:
        """So many channels at width 1; whole vectors of them at another.

        >>> Variant(1, 224, 0.35).channels(64)
        24
        """
        return num if self.width == 1 else max(_MULTIPLE, round(num * self.width / _MULTIPLE) * _MULTIPLE)
