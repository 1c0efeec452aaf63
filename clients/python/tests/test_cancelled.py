"""A cancellation from outside ends the tasks, such as at the end of the loop. A function of the
app that was cancelled is called again."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import httpx
import pytest

from headmark import AsyncHeadmark, AsyncInboxReader, AsyncUnreadPoller, InboxPosition, runner
from headmark.machines.poller import UnreadView
from tests.virtual import LoopClock, run

ITEM = {"seq": 1, "sent_at": "2026-01-31T09:30:00.123Z"}
PAGE = {"items": [ITEM], "epoch": "i", "head": 1, "next_after": 1, "has_more": False}
SUMMARY = {"user_id": "42", "epoch": "e", "revision": 1, "degraded": False}


@pytest.fixture(params=["of this Python", "of Python 3.10"], autouse=True)
def tasks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "of Python 3.10":
        monkeypatch.setattr(runner, "new_task", runner.CountingTask)


async def answer(request: httpx.Request) -> httpx.Response:
    """Holds what waits."""
    await asyncio.sleep(3_600 if "wait" in request.url.params else 0)
    body = PAGE if request.url.path.endswith("/inbox") else SUMMARY
    return httpx.Response(200, json=body, headers={"etag": '"1"'})


def client(token: Any = "good") -> AsyncHeadmark:
    transport = httpx.MockTransport(answer)
    return AsyncHeadmark("http://h", token=token, transport=transport, clock=LoopClock())


def reader(on_items: Any) -> AsyncInboxReader:
    return AsyncInboxReader(
        client(), position=None, on_items=on_items, on_reset=lambda: None, device="phone"
    )


async def for_ever(*_: object) -> str:
    await asyncio.sleep(1_000_000)
    return "late"


async def nothing(*_: object) -> None:
    pass


@pytest.mark.parametrize("after_s", [0, 5])
@pytest.mark.parametrize(
    "make",
    [
        lambda: AsyncUnreadPoller(client()),
        lambda: AsyncUnreadPoller(client(for_ever)),
        lambda: reader(nothing),
        lambda: reader(for_ever),
    ],
    ids=["a poller", "a token that never comes", "a reader", "an app that stores for ever"],
)
def test_the_end_of_the_loop_ends_it(
    make: Any, after_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        make().start()
        await asyncio.sleep(after_s)
        # As at the end of `asyncio.run`.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert others
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(story())
    assert caplog.records == []


def test_a_token_function_that_was_cancelled_is_called_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As what awaits a renewal that somebody cancelled."""
    calls = 0

    async def token(is_rejected: bool) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise asyncio.CancelledError
        return "good"

    async def story() -> None:
        async with client(token) as headmark, AsyncUnreadPoller(headmark) as poller:
            await asyncio.sleep(5)
            assert poller.view["status"] == "live"

    run(story())
    assert len(caplog.records) == 1


def test_a_delivery_that_the_app_cancels_comes_again(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    async def on_items(items: list[Any], position: InboxPosition) -> None:
        calls.append(len(items))
        if len(calls) == 1:
            # As what awaits a task that somebody cancelled.
            raise asyncio.CancelledError

    async def story() -> None:
        async with reader(on_items) as started:
            await asyncio.sleep(5)
            assert started.status == "live"

    run(story())
    assert calls == [1, 1]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit])
def test_a_callback_that_was_cancelled_stops_nothing(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """As one that reads the result of a cancelled task."""
    calls = 0

    def on_view(view: UnreadView) -> None:
        nonlocal calls
        calls += 1
        raise error

    async def story() -> None:
        async with client() as headmark, AsyncUnreadPoller(headmark, on_view=on_view) as poller:
            await asyncio.sleep(5)
            assert poller.view["status"] == "live"

    run(story())
    assert calls == len(caplog.records) == 3


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_callback_may_end_the_program(error: type[BaseException]) -> None:
    """In a loop of the app these end it, as in every callback of asyncio."""

    def callback() -> None:
        raise error

    with pytest.raises(error):
        runner.call_safely(callback)


# Before, no loop begins tasks at once.
if sys.version_info >= (3, 12):

    def test_a_loop_that_begins_tasks_at_once_delivers_all_the_same() -> None:
        delivered: list[int] = []

        async def main() -> None:
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
            inbox = reader(lambda items, _: delivered.extend(item["seq"] for item in items))
            inbox.start()
            await asyncio.sleep(5)
            assert inbox.status == "live"
            await inbox.stop()

        run(main())
        assert delivered[0] == 1
