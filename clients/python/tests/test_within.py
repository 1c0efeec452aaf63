"""The time limit of asyncio's work, and what is left of it."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import httpx
import pytest

from headmark import AsyncHeadmark, NoAnswerError, routes
from headmark.within import TooLateError, within
from tests.virtual import LoopClock, run

GET = routes.get_settings("42")


def test_no_cancellation_is_lost() -> None:
    """Whenever it comes: also when the answer has just come."""

    async def handle(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        return httpx.Response(200, json={})

    async def story() -> tuple[int, int]:
        kept = lost = turns = 0
        async with AsyncHeadmark("http://h", transport=httpx.MockTransport(handle)) as headmark:
            while kept + lost < 300:
                task = asyncio.create_task(headmark.send(GET))
                for _ in range(turns):
                    await asyncio.sleep(0)
                # False: it has ended.
                if not task.cancel():
                    turns = 0
                    continue
                turns += 1
                await asyncio.wait([task])
                kept, lost = kept + task.cancelled(), lost + (not task.cancelled())
        return kept, lost

    assert asyncio.run(story()) == (300, 0)


def test_a_request_has_ended_when_its_cancellation_has() -> None:
    ended: list[str] = []

    async def handle(request: httpx.Request) -> httpx.Response:
        try:
            await asyncio.sleep(1_000)
        finally:
            ended.append("request")
        raise AssertionError

    async def story() -> None:
        transport = httpx.MockTransport(handle)
        async with AsyncHeadmark("http://h", transport=transport, clock=LoopClock()) as headmark:
            task = asyncio.create_task(headmark.send(GET))
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.wait([task])
            assert ended == ["request"]
            with pytest.raises(NoAnswerError, match="timeout"):
                await headmark.send(GET, retries=0)
            assert ended == ["request", "request"]

    run(story())


def test_the_result_and_the_error_are_those_of_the_work() -> None:
    async def give(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    async def story() -> None:
        assert await within(1, give(5)) == 5
        for error in (asyncio.TimeoutError("theirs"), ValueError("theirs")):
            with pytest.raises(type(error), match="theirs"):
                await within(1, give(error))

    run(story())


def test_work_that_refuses_to_end_is_left_alone() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(100)
        raise ValueError("nobody hears of it")

    async def story() -> None:
        with pytest.raises(TooLateError):
            await within(5, stubborn())
        assert asyncio.get_running_loop().time() == pytest.approx(6)
        await asyncio.sleep(200)

    run(story())


def test_an_error_after_the_time_is_silent() -> None:
    async def fails() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            raise ValueError("nobody hears of it")

    async def story() -> list[Any]:
        heard: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        with pytest.raises(TooLateError):
            await within(5, fails())
        gc.collect()
        return heard

    assert run(story()) == []
