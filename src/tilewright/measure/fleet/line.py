"""`Line`: what waits to be done, and those who wait for something to do; each thing wakes one of them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class Line(Generic[_Item]):
    """First come, first served, on both sides."""

    def __init__(self) -> None:
        self.items: deque[_Item] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def put(self, item: _Item) -> None:
        self.items.append(item)
        self._wake()

    def put_back(self, item: _Item) -> None:
        """It is the next one again."""
        self.items.appendleft(item)
        self._wake()

    async def get(self) -> _Item:
        while not self.items:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()  # the turn of somebody else, then
                raise
        return self.items.popleft()

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
