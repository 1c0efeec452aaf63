"""Functions of the app that raise what ends an iteration or a program: in a thread, they failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from headmark import Headmark, InboxReader, UnreadPoller
from headmark.clock import SystemClock
from headmark.poller import nothing
from tests.fake import problem

ITEM = {"seq": 5, "sent_at": "2026-01-31T09:30:00.123Z"}
PAGE = {"items": [ITEM], "epoch": "new", "head": 5, "next_after": 5, "has_more": False}
COUNTERS = {"mention": {"unread": 1, "head": 1}}
SUMMARY = {"user_id": "42", "epoch": "e", "revision": 1, "degraded": False, "counters": COUNTERS}
ERRORS = [StopIteration, SystemExit, GeneratorExit, asyncio.CancelledError]


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
    """Holds what waits, and refuses resets."""
    await asyncio.sleep(3_600 if "wait" in request.url.params else 0)
    if request.method == "POST":
        return problem(403, "forbidden")
    if request.url.params.get("after") == "3":
        return problem(410, "cursor_expired", earliest_seq=5)
    body = PAGE if request.url.path.endswith("/inbox") else SUMMARY
    return httpx.Response(200, json=body, headers={"etag": '"1"'})


def client(token: Any = "good") -> Headmark:
    transport: Any = httpx.MockTransport(answer)
    return Headmark("http://h", token=token, transport=transport, clock=QuickClock())


def until(check: Callable[[], bool]) -> None:
    limit = time.monotonic() + 10
    while not check():
        assert time.monotonic() < limit
        time.sleep(0.01)


def causes(caplog: pytest.LogCaptureFixture) -> list[object]:
    """What was behind each logged failure."""
    raised = [record.exc_info[1] for record in caplog.records if record.exc_info]
    return [type(one.__cause__) for one in raised if one]


@pytest.mark.parametrize("error", ERRORS)
def test_a_reader_calls_again_what_failed(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    token, on_reset, on_items = Failing(error, "good"), Failing(error), Failing(error)
    with client(token) as headmark:
        # Of another epoch, so that there is a reset first.
        position: Any = {"epoch": "old", "after": 9}
        reader = InboxReader(
            headmark, position=position, on_items=on_items, on_reset=on_reset, timeout_s=0.5
        )
        with reader:
            until(lambda: reader.status == "live")
    assert (on_reset.calls, on_items.calls) == (2, 2)
    assert causes(caplog) == [error] * 3


@pytest.mark.parametrize("error", ERRORS)
def test_a_reader_whose_callbacks_fail_goes_on(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    on_gap, on_status = Failing(error), Failing(error)
    with client() as headmark:
        options: Any = {"on_gap": on_gap, "on_status": on_status}
        position: Any = {"epoch": "new", "after": 3}
        reader = InboxReader(
            headmark, position=position, on_items=nothing, on_reset=nothing, **options
        )
        with reader:
            until(lambda: reader.status == "live")
    assert reader.status == "idle"
    assert on_gap.calls == 1
    assert causes(caplog) == [error] * 2


@pytest.mark.parametrize("error", ERRORS)
def test_a_poller_whose_callbacks_fail_goes_on(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    on_view, on_refused = Failing(error), Failing(error)
    with client() as headmark:
        poller = UnreadPoller(headmark, on_view=on_view, on_refused=on_refused)
        poller.start()
        until(lambda: poller.view["status"] == "live")
        poller.reset("counters", "mention")
        until(lambda: on_refused.calls == 1)
        poller.stop()
    assert [view["status"] for view in poller] == ["idle"]
    assert causes(caplog) == [error] * 2
