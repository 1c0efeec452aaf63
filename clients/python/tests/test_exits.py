"""Functions of the app that raise what ends an iteration or a program: in a thread, they failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from headmark import Headmark, InboxReader
from headmark.clock import SystemClock

ITEM = {"seq": 1, "sent_at": "2026-01-31T09:30:00.123Z"}
PAGE = {"items": [ITEM], "epoch": "new", "head": 1, "next_after": 1, "has_more": False}


class QuickClock(SystemClock):
    async def sleep_async(self, seconds: float) -> None:
        await asyncio.sleep(0.01)


class Failing:
    """Raises when it is called first."""

    def __init__(self, error: type[BaseException], answer: object = None) -> None:
        self.error, self.answer = error, answer
        self.calls = 0

    def __call__(self, *_: object) -> Any:
        self.calls += 1
        if self.calls == 1:
            raise self.error
        return self.answer


async def answer(request: httpx.Request) -> httpx.Response:
    """Holds what waits."""
    await asyncio.sleep(3_600 if "wait" in request.url.params else 0)
    return httpx.Response(200, json=PAGE)


def client(token: Any = "good") -> Headmark:
    transport: Any = httpx.MockTransport(answer)
    return Headmark("http://h", token=token, transport=transport, clock=QuickClock())


def until(check: Callable[[], bool]) -> None:
    limit = time.monotonic() + 10
    while not check():
        assert time.monotonic() < limit
        time.sleep(0.01)


@pytest.mark.parametrize("error", [StopIteration])
def test_a_reader_calls_again_what_failed(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    token, on_reset, on_items = Failing(error, "good"), Failing(error), Failing(error)
    with client(token) as headmark:
        # Of another epoch, so that there is a reset first.
        position: Any = {"epoch": "old", "after": 5}
        reader = InboxReader(
            headmark, position=position, on_items=on_items, on_reset=on_reset, timeout_s=0.5
        )
        with reader:
            until(lambda: reader.status == "live")
    assert (on_reset.calls, on_items.calls) == (2, 2)
    raised = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [type(one.__cause__) for one in raised if one] == [error] * 3
