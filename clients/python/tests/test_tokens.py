"""Functions that return a token late, never, or not at all."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from headmark import AsyncHeadmark, AsyncUnreadPoller, Headmark, NoAnswerError, UnreadPoller, routes
from headmark.clock import SystemClock
from tests.fake import problem
from tests.virtual import LoopClock, run

# Without a key, an id or a position: it is sent again only where it was not sent.
RESET = routes.reset_badge("42", "mention")
COUNTERS = {"mention": {"unread": 1, "head": 1}}
SUMMARY = {"user_id": "42", "epoch": "e", "revision": 1, "degraded": False, "counters": COUNTERS}


class Server(httpx.MockTransport):
    """Holds polls, and answers everything else after a while. Only `good` is a token."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.takes_s = takes_s
        self.requests = 0
        super().__init__(self.answer)

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if request.headers["authorization"] != "Bearer good":
            return problem(401, "unauthorized")
        await asyncio.sleep(3_600 if "wait" in request.url.params else self.takes_s)
        return httpx.Response(200, json=SUMMARY, headers={"etag": '"1"'})


def client(server: Server, token: Callable[[bool], Awaitable[str]]) -> AsyncHeadmark:
    return AsyncHeadmark("http://h", token=token, transport=server, clock=LoopClock())


async def never() -> str:
    await asyncio.sleep(1_000_000)
    return "late"


def test_a_token_that_never_comes() -> None:
    """It ends with the attempt. Nothing was sent, so each request is tried again."""
    cancelled = 0

    async def token(is_rejected: bool) -> str:
        nonlocal cancelled
        try:
            return await never()
        finally:
            cancelled += 1

    async def story() -> None:
        server = Server()
        async with client(server, token) as headmark:
            with pytest.raises(NoAnswerError, match="token") as raised:
                await headmark.send(RESET, timeout_s=5)
            assert raised.value.reason == "not_sent"
        await asyncio.sleep(0)
        # Three attempts, and pauses of 1 s and 2 s.
        assert asyncio.get_running_loop().time() == pytest.approx(3 * 5 + 1 + 2)
        assert (cancelled, server.requests) == (3, 0)

    run(story())


def test_a_renewal_that_never_comes() -> None:
    async def token(is_rejected: bool) -> str:
        return await never() if is_rejected else "bad"

    async def story() -> None:
        async with client(Server(), token) as headmark:
            with pytest.raises(NoAnswerError, match="token"):
                await headmark.send(RESET, retries=0)

    run(story())


@pytest.mark.parametrize(("takes_s", "is_late"), [(3.0, False), (5.0, True)])
def test_an_attempt_has_one_limit_for_token_and_answer(takes_s: float, is_late: bool) -> None:
    async def token(is_rejected: bool) -> str:
        await asyncio.sleep(6)
        return "good"

    async def story() -> None:
        async with client(Server(takes_s), token) as headmark:
            if not is_late:
                assert await headmark.send(RESET, retries=0)
                return
            with pytest.raises(NoAnswerError) as raised:
                await headmark.send(RESET, retries=0)
            # It was sent: nobody knows whether it took effect.
            assert raised.value.reason == "timeout"
            assert asyncio.get_running_loop().time() == pytest.approx(10)

    run(story())


@pytest.mark.parametrize("error", [asyncio.TimeoutError("theirs"), httpx.ReadError("theirs")])
def test_what_the_function_raises_is_raised(error: Exception) -> None:
    """Also what would mean something else if the request raised it."""

    async def token(is_rejected: bool) -> str:
        raise error

    async def story() -> None:
        async with client(Server(), token) as headmark:
            with pytest.raises(type(error), match="theirs"):
                await headmark.send(RESET)

    run(story())


def test_a_poller_goes_on_when_tokens_come_again() -> None:
    hangs = True

    async def token(is_rejected: bool) -> str:
        return await never() if hangs else "good"

    async def story() -> list[str]:
        nonlocal hangs
        seen: list[str] = []
        async with client(Server(), token) as headmark:
            async with AsyncUnreadPoller(headmark, "42") as poller:
                await asyncio.sleep(10.5)
                seen.append(poller.view["status"])
                hangs = False
                await asyncio.sleep(15)
                seen.append(poller.view["status"])
                # A stop does not wait for the token of a reset for ever.
                hangs = True
                poller.reset("counters", "mention")
            seen.append(poller.view["status"])
        return seen

    assert run(story()) == ["retrying", "live", "idle"]


class Hanging:
    """A function for threads."""

    def __init__(self) -> None:
        self.calls: list[bool] = []
        self.returns = threading.Event()

    def __call__(self, is_rejected: bool) -> str:
        self.calls.append(is_rejected)
        assert self.returns.wait(120)
        return "good"


class QuickClock(SystemClock):
    """Counts the pauses, and shortens them."""

    pauses = 0

    async def sleep_async(self, seconds: float) -> None:
        self.pauses += 1
        await asyncio.sleep(0.01)


def until(check: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while not check():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_a_function_that_hangs_for_a_while_in_its_thread() -> None:
    token, clock = Hanging(), QuickClock()
    transport: Any = Server()
    headmark = Headmark("http://h", token=token, transport=transport, clock=clock)
    options: Any = {"timeout_s": 0.5}
    try:
        with headmark, UnreadPoller(headmark, "42", **options) as poller:
            until(lambda: poller.view["status"] == "retrying")
            token.returns.set()
            until(lambda: poller.view["status"] == "live")
    finally:
        token.returns.set()


def test_a_function_that_hangs_for_ever_in_its_thread() -> None:
    """It keeps one thread, whatever the number of attempts, and a stop does not wait for it."""
    token, clock = Hanging(), QuickClock()
    transport: Any = Server()
    headmark = Headmark("http://h", token=token, transport=transport, clock=clock)
    options: Any = {"timeout_s": 0.01}
    try:
        with headmark:
            poller = UnreadPoller(headmark, "42", **options)
            poller.start()
            until(lambda: clock.pauses >= 3)
            assert poller.view["status"] == "retrying"
            stopping = threading.Thread(target=poller.stop)
            stopping.start()
            stopping.join(30)
            assert not stopping.is_alive()
            assert token.calls == [False]
    finally:
        token.returns.set()
