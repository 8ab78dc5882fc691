"""`Context`: what a kernel finds in the caches when it is timed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tilewright.arguments import instance
from tilewright.errors import UsageError
from tilewright.te import DTYPES, Task, Tensor

_WARM = "warm"
_COLD = "cold-"
_SIZE = "([0-9]{1,12})([KMG]?)"
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_STEPS = 4  # the weights of a network are rounded to so many sizes to a factor of two
_FEW_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Context:
    """Warm: a kernel finds its arrays where its last run left them. Cold: they were last touched a while ago.

    In a network the weights of a kernel are read once in an inference, and those of all other kernels in between.
    `cold_bytes` is how much that is together. `activation_bytes` is the memory that the inputs and outputs of all
    kernels share: where other kernels have been since. 0 is warm.

    >>> Context.parse("cold-8M").cold_bytes, str(Context(3 << 19, 1 << 20)), str(Context())
    (8388608, 'cold-1536K-1M', 'warm')
    """

    cold_bytes: int = 0
    activation_bytes: int = 0

    @classmethod
    def parse(cls, text: str) -> Context:
        """Read "warm", or "cold-" and a size such as 8M; a second size is that of the activations."""
        if text == _WARM:
            return cls()
        found = re.fullmatch(rf"{_COLD}{_SIZE}(?:-{_SIZE})?", text)
        context = cls(_bytes(found[1], found[2]), _bytes(found[3] or "0", found[4] or "")) if found else cls()
        if context == cls() or (found and found[3] and not context.activation_bytes):
            raise UsageError(f"the context is {text!r}; it must be 'warm', or 'cold-' and a size such as 'cold-8M'")
        return context

    @classmethod
    def of(cls, context: Context | str) -> Context:
        """The context, or what its text says."""
        return context if isinstance(context, Context) else cls.parse(instance("context", context, str))

    @classmethod
    def of_network(cls, weight_bytes: int, activation_bytes: int = 0) -> Context:
        """That of the kernels of a network: of all its weights, and of the memory that its activations share.

        Rounded, so that records still apply when a network changes a little. Few activations are always in a cache.

        >>> str(Context.of_network(46_827_520, 8_028_160)), str(Context.of_network(0, 1024))
        ('cold-48M-8M', 'warm')
        """
        activations = _rounded(activation_bytes, 1) if activation_bytes >= _FEW_BYTES else 0
        return cls(_rounded(weight_bytes, _STEPS), activations)

    def of_task(self, task: Task) -> Context:
        """What it comes to for a task: the constants of one that has none are not cold."""
        return self if constant_bytes([task]) else replace(self, cold_bytes=0)

    def __str__(self) -> str:
        if self == WARM:
            return _WARM
        activations = f"-{_text(self.activation_bytes)}" if self.activation_bytes else ""
        return f"{_COLD}{_text(self.cold_bytes)}{activations}"


def _rounded(num_bytes: int, steps: int) -> int:
    """To so many sizes to a factor of two."""
    if num_bytes <= 0:
        return 0
    step: int = 2 ** max(0, math.floor(math.log2(num_bytes)) - int(math.log2(steps)))
    return round(num_bytes / step) * step


def _bytes(digits: str, unit: str) -> int:
    return int(digits) * _UNITS[unit]


def _text(num_bytes: int) -> str:
    unit = next(unit for unit, size in reversed(_UNITS.items()) if num_bytes % size == 0) if num_bytes else ""
    return f"{num_bytes // _UNITS[unit]}{unit}"


WARM = Context()


def constant_bytes(tasks: Iterable[Task]) -> int:
    """The bytes of all constants of the tasks, such as the weights of a network."""
    return sum(_num_bytes(tensor) for task in tasks for tensor in task.constants)


def activation_bytes(task: Task) -> int:
    """The bytes of the inputs of a task that are no constants, and of its outputs."""
    return sum(_num_bytes(t) for t in (*task.inputs, *task.outputs) if not t.is_constant)


def _num_bytes(tensor: Tensor) -> int:
    return math.prod(tensor.shape) * DTYPES[tensor.dtype].bytes
