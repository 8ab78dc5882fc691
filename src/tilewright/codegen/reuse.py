"""Code that programs share: what was written and compiled for one is there for the next.

The candidates of a task differ in the tiles of one stage, say, while the transforms around it, which take most of the
compiler's time, are the same ones again and again. Bodies of parallel loops are functions, so that these are kept: as
text by the loop that they came from, and large ones, and those that come again, as object files by their text. So are
the functions that pack constants.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Generic, TypeVar

from tilewright.codegen.binary import KernelBinary
from tilewright.codegen.module import generate
from tilewright.codegen.module_text import Function, ParallelBody
from tilewright.codegen.native import compile_object
from tilewright.ir import For, lower
from tilewright.schedule import Schedule
from tilewright.target import Target

_Item = TypeVar("_Item")

# Smaller functions are compiled with the first program that has them: an object file more takes 3 ms to make and
# 0.1 ms to load.
_LARGE_TEXT = 20_000
_MAX_BYTES = 32 << 20


class CodeShelf:
    """Bodies of parallel loops that were written and compiled before, for one target and number of threads."""

    def __init__(self, target: Target, num_threads: int) -> None:
        self.target = target
        self.num_threads = num_threads
        self._bodies: _Recent[ParallelBody] = _Recent(lambda body: len(body.text))
        self._objects: _Recent[bytes] = _Recent(len)
        self._texts: _Recent[str] = _Recent(len)

    def body(self, loop: For, surroundings: object, write: Callable[[], ParallelBody]) -> ParallelBody:
        """The body of a loop that is written as in `surroundings`, or as `write` gives it.

        Loops are the same if all that is in them is: variables and buffers by name, type, size, and place.
        """
        return self._bodies.get(pickle.dumps((loop, surroundings)), write)

    def compile(self, schedule: Schedule) -> KernelBinary:
        """The binary of a schedule, whose functions that are large, or came before, are object files of their own."""
        module = lower(schedule)
        generated = generate(module, self.target, self.num_threads, shelf=self)
        apart = [each for each in generated.separable if self._came_before(each) or len(each.text) >= _LARGE_TEXT]
        parts = tuple(map(self._object, apart))
        object_code = compile_object(generated.without(apart), self.target)
        return KernelBinary.made_of(module, generated, object_code, parts)

    def _came_before(self, function: Function) -> bool:
        """Whether another program had it; the next one is told so."""
        came_before = function.text in self._texts
        self._texts.get(function.text, lambda: function.text)
        return came_before

    def _object(self, function: Function) -> bytes:
        return self._objects.get(function.text, lambda: compile_object(function.as_module(), self.target))


class _Recent(Generic[_Item]):
    """Items by their keys, as many of those that were used last as fit."""

    def __init__(self, size: Callable[[_Item], int]) -> None:
        self._size = size
        self._items: dict[bytes | str, _Item] = {}
        self._num_bytes = 0

    def __contains__(self, key: bytes | str) -> bool:
        return key in self._items

    def get(self, key: bytes | str, make: Callable[[], _Item]) -> _Item:
        item = self._items.pop(key, None)
        if item is None:
            item = make()
            self._num_bytes += self._size(item) + len(key)
        self._items[key] = item
        while self._num_bytes > _MAX_BYTES and len(self._items) > 1:
            oldest = next(iter(self._items))
            self._num_bytes -= self._size(self._items.pop(oldest)) + len(oldest)
        return item
