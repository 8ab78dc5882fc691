"""`Context`: what a kernel finds in the caches when it is timed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.arguments import instance
from tilewright.errors import UsageError
from tilewright.te import DTYPES, Task

_WARM = "warm"
_COLD = "cold-"
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_STEPS = 4  # sizes of networks are rounded to so many to a factor of two


@dataclass(frozen=True, slots=True)
class Context:
    """Warm: a kernel finds its constants where its last run left them. Cold: they were last read a while ago.

    In a network the weights of a kernel are read once in an inference, and those of all other kernels in between.
    `cold_bytes` is how much that is together; 0 is warm. Inputs and outputs are warm in either context.

    >>> Context.parse("cold-8M").cold_bytes, str(Context(3 << 19)), str(Context())
    (8388608, 'cold-1536K', 'warm')
    """

    cold_bytes: int = 0

    @classmethod
    def parse(cls, text: str) -> Context:
        """Read "warm", or "cold-" and a size such as 8M."""
        if text == _WARM:
            return cls()
        found = re.fullmatch(rf"{_COLD}([0-9]{{1,12}})([KMG]?)", text)
        if found is None or int(found[1]) == 0:
            raise UsageError(f"the context is {text!r}; it must be 'warm', or 'cold-' and a size such as 'cold-8M'")
        return cls(int(found[1]) * _UNITS[found[2]])

    @classmethod
    def of(cls, context: Context | str) -> Context:
        """The context, or what its text says."""
        return context if isinstance(context, Context) else cls.parse(instance("context", context, str))

    @classmethod
    def of_network(cls, weight_bytes: int) -> Context:
        """That of the kernels of a network, all of whose weights have so many bytes.

        Rounded, so that records still apply when a network changes a little.

        >>> str(Context.of_network(46_827_520)), str(Context.of_network(0))
        ('cold-48M', 'warm')
        """
        if weight_bytes <= 0:
            return cls()
        step = 2 ** max(0, math.floor(math.log2(weight_bytes)) - int(math.log2(_STEPS)))
        return cls(round(weight_bytes / step) * step)

    def of_task(self, task: Task) -> Context:
        """What it comes to for a task: one that has no constants is always warm."""
        return self if constant_bytes([task]) else Context()

    def __str__(self) -> str:
        if not self.cold_bytes:
            return _WARM
        unit = next(unit for unit, size in reversed(_UNITS.items()) if self.cold_bytes % size == 0)
        return f"{_COLD}{self.cold_bytes // _UNITS[unit]}{unit}"


WARM = Context()


def constant_bytes(tasks: Iterable[Task]) -> int:
    """The bytes of all constants of the tasks, such as the weights of a network."""
    return sum(math.prod(t.shape) * DTYPES[t.dtype].bytes for task in tasks for t in task.constants)
