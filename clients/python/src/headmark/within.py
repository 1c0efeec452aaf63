"""A time limit for work of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

# How long the end of what was cancelled is waited for: it gives back its connection. An app's
# function may refuse to end.
END_S = 1.0


class TooLateError(Exception):
    """The time is over. Not a TimeoutError, which the work itself may raise."""


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Not `asyncio.wait_for`: before Python 3.12, it loses a cancellation that comes when the work
    has just ended."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            raise TooLateError
        return task.result()
    finally:
        if task.cancel():
            await asyncio.wait([task], timeout=END_S)
        # What it ends with after its time is nobody's concern, and no warning's.
        if task.done() and not task.cancelled():
            task.exception()
