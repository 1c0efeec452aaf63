"""Time that jumps: from answer to answer for requests, from timer to timer for an event loop."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class FakeClock:
    """Sleeps take no time, and are kept. The random part of a pause is always the longest."""

    def __init__(self) -> None:
        self.time = 1_000.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.time

    def random(self) -> float:
        return 1.0

    def sleep(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 3))
        self.time += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)


class _Selector(selectors.DefaultSelector):
    """Instead of waiting, it moves the time on."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everything waits, and nothing will ever happen")
        self.time += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.time


class LoopClock:
    """The time of the running loop, and dice."""

    def __init__(self, random: Any = None) -> None:
        self._random = random

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def random(self) -> float:
        return float(self._random.random()) if self._random else 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError("a loop must not block")

    async def sleep_async(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs it in virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
