"""The inbox reader against a model of the server, in virtual time, all the way through HTTP."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import httpx
import pytest

from headmark import AsyncHeadmark, AsyncInboxReader, InboxPosition
from tests.model import Model, item
from tests.virtual import LoopClock, run


class Phone:
    """What its database has survives the app."""

    def __init__(self, model: Model, dice: Random) -> None:
        self.model, self.dice = model, dice
        self.rows: list[Any] = []
        self.position: InboxPosition | None = None
        self.resets = 0
        self.gaps: list[Any] = []
        self.reader: AsyncInboxReader | None = None

    async def launch(self) -> None:
        await self.kill()
        client = self.model.client()

        async def commit() -> None:
            await asyncio.sleep(self.dice.random() / 5)
            if self.reader is not reader:
                await asyncio.sleep(1_000)  # a killed app commits nothing
            if self.dice.random() < self.model.badness / 2:
                raise OSError("the disk is full")

        async def on_items(items: list[Any], position: InboxPosition) -> None:
            await commit()
            self.rows, self.position = [*self.rows, *items], position

        async def on_reset() -> None:
            await commit()
            self.rows, self.position, self.resets = [], None, self.resets + 1

        reader = AsyncInboxReader(
            client,
            "42",
            position=self.position,
            on_items=on_items,
            on_reset=on_reset,
            on_gap=self.gaps.append,
            device="phone",
            limit=7,
        )
        self.reader = reader
        reader.start()

    async def kill(self) -> None:
        reader, self.reader = self.reader, None
        if reader:
            await reader.stop()


async def simulate(seed: int, restores: int) -> None:
    dice = Random(seed)
    model = Model(dice, badness=0.35)
    phone = Phone(model, dice)
    await phone.launch()
    for step in range(40):
        await asyncio.sleep(dice.random() * 4)
        new = tuple(f"{step}.{n}" for n in range(dice.randrange(12)))
        model.write(inbox=model.rows.inbox + new)
        if dice.random() < 0.2:
            await phone.launch()
        if dice.random() < restores / 40:
            model.restore()
    model.badness = 0.0
    await asyncio.sleep(200)
    expected = [item(n + 1, content) for n, content in enumerate(model.rows.inbox)]
    assert phone.rows == expected
    assert phone.gaps == []
    assert phone.resets == 0 or restores
    assert model.rows.cursor == len(expected)
    await phone.kill()


@pytest.mark.parametrize("seed", range(25))
def test_every_item_once(seed: int) -> None:
    run(simulate(seed, restores=0))


@pytest.mark.parametrize("seed", range(25))
def test_every_item_once_through_restores(seed: int) -> None:
    run(simulate(seed, restores=3))


async def behind(inbox: str, floor: int, launches: int) -> Phone:
    """It has two items, and was off while the server got these and removed the first ones."""
    model = Model(Random(1))
    phone = Phone(model, Random(1))
    await phone.launch()
    model.write(inbox=("a", "b"))
    await asyncio.sleep(5)
    await phone.kill()
    model.write(inbox=tuple(inbox), floor=floor)
    for _ in range(launches):
        await phone.launch()
        await asyncio.sleep(5)
        await phone.kill()
    return phone


def test_items_that_expired() -> None:
    phone = run(behind("abcde", floor=3, launches=1))
    assert [row["seq"] for row in phone.rows] == [1, 2, 4, 5]
    assert phone.gaps == [{"type": "gap", "after": 2, "earliest_seq": 4}]
    assert phone.resets == 0


def test_a_gap_is_told_once_also_where_nothing_is_left() -> None:
    phone = run(behind("abcd", floor=4, launches=3))
    assert phone.gaps == [{"type": "gap", "after": 2, "earliest_seq": 5}]
    assert phone.position
    assert phone.position["after"] == 4


END: Any = {"epoch": "i1", "next_after": 1, "has_more": False}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"items": []},
        {"items": [], "epoch": "i1"},
        {**END, "items": {}},
        {**END, "items": [], "next_after": "1"},
        {**END, "items": [], "next_after": True},
        {**END, "items": [None]},
        {**END, "items": [[]]},
        {**END, "items": [{"seq": "1"}]},
    ],
)
def test_the_json_of_something_else_is_an_outage(body: Any) -> None:
    async def story() -> None:
        model = Model(Random(1))
        model.write(inbox=("a", "b"))
        phone = Phone(model, Random(1))
        page, foreign = model.page, 2

        async def other(request: Any) -> httpx.Response:
            nonlocal foreign
            foreign -= 1
            return httpx.Response(200, json=body) if foreign >= 0 else await page(request)

        model.page = other  # type: ignore[method-assign]
        await phone.launch()
        await asyncio.sleep(20)
        assert len(phone.rows) == 2
        await phone.kill()

    run(story())


def test_a_callback_may_stop_the_reader() -> None:
    async def story() -> list[Any]:
        model = Model(Random(1))
        model.write(inbox=("a", "b"))
        got: list[Any] = []

        async def on_items(items: list[Any], position: InboxPosition) -> None:
            got.extend(items)
            await reader.stop()

        client = model.client()
        reader = AsyncInboxReader(
            client, "42", position=None, on_items=on_items, on_reset=lambda: None, device="phone"
        )
        reader.start()
        await asyncio.sleep(100)
        assert reader.status == "idle"
        assert model.rows.cursor == 2
        return got

    assert len(run(story())) == 2


def test_a_stop_is_over_when_the_last_cursor_is_put() -> None:
    """However many puts were in flight before."""
    puts: list[int] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            puts.append(json.loads(request.content)["seq"])
            await asyncio.sleep(3)
            return httpx.Response(200, json={})
        seq = int(request.url.params.get("after", 0)) + 1
        body = {"items": [item(seq, "Hi")], "epoch": "i1", "next_after": seq, "has_more": True}
        return httpx.Response(200, json=body)

    async def on_items(items: list[Any], position: InboxPosition) -> None:
        # The third page is stored while the second position is put.
        await asyncio.sleep(4 if position["after"] == 3 else 1)

    async def story() -> None:
        client = AsyncHeadmark("http://h", transport=httpx.MockTransport(answer), clock=LoopClock())
        reader = AsyncInboxReader(
            client, position=None, on_items=on_items, on_reset=lambda: None, device="phone"
        )
        reader.start()
        await asyncio.sleep(2.5)
        assert puts == [1]
        await reader.stop()
        # 1 s until the first put, and 3 s for each.
        assert asyncio.get_running_loop().time() == 10
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(story())
    assert puts == [1, 2, 3]


def test_the_last_cursor_has_time_of_its_own_however_long_the_app_stores() -> None:
    answered: list[int] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            await asyncio.sleep(1)
            answered.append(json.loads(request.content)["seq"])
            return httpx.Response(200, json={})
        body = {"items": [item(1, "Hi")], "epoch": "i1", "next_after": 1, "has_more": False}
        return httpx.Response(200, json=body)

    async def story() -> None:
        client = AsyncHeadmark("http://h", transport=httpx.MockTransport(answer), clock=LoopClock())
        reader = AsyncInboxReader(
            client,
            position=None,
            on_items=lambda items, position: asyncio.sleep(9.75),
            on_reset=lambda: None,
            device="phone",
        )
        reader.start()
        await asyncio.sleep(0.25)
        await reader.stop()
        assert asyncio.get_running_loop().time() == 10.75

    run(story())
    assert answered == [1]


def test_a_stop_is_over_too_when_the_reader_was_started_again_meanwhile() -> None:
    async def on_items(items: list[Any], position: InboxPosition) -> None:
        await asyncio.sleep(2)

    async def story() -> None:
        model = Model(Random(1))
        model.write(inbox=("a", "b"))
        reader = AsyncInboxReader(
            model.client(), "42", position=None, on_items=on_items, on_reset=lambda: None
        )
        reader.start()
        await asyncio.sleep(1)
        stopping = asyncio.create_task(reader.stop())
        await asyncio.sleep(0)
        reader.start()
        await asyncio.wait_for(stopping, 5)
        assert reader.status == "live"
        await reader.stop()

    run(story())


async def read_by(on_items: Any, stops: int) -> AsyncInboxReader:
    """It has two items, and the reader runs for 100 s after each stop."""
    model = Model(Random(1))
    model.write(inbox=("a", "b"))
    reader = AsyncInboxReader(
        model.client(), "42", position=None, on_items=on_items, on_reset=lambda: None
    )
    for _ in range(stops):
        reader.start()
        await asyncio.sleep(5)
        await reader.stop()
        assert reader.status == "idle"
    reader.start()
    await asyncio.sleep(100)
    return reader


def test_a_delivery_that_a_stop_gives_up_comes_again() -> None:
    calls: list[int] = []

    async def on_items(items: list[Any], position: InboxPosition) -> None:
        calls.append(len(items))
        if len(calls) == 1:
            await asyncio.sleep(1_000_000)

    async def story() -> None:
        reader = await read_by(on_items, stops=1)
        assert reader.status == "live"
        await reader.stop()

    run(story())
    assert calls == [2, 2]


def test_what_the_app_does_to_its_items_does_not_change_those_that_come_again() -> None:
    calls: list[tuple[list[int], int]] = []

    async def on_items(items: list[Any], position: InboxPosition) -> None:
        calls.append(([item["seq"] for item in items], position["after"]))
        items.clear()
        position["after"] = 0
        if len(calls) == 1:
            raise OSError("the disk is full")

    async def story() -> None:
        reader = await read_by(on_items, stops=0)
        await reader.stop()

    run(story())
    assert calls == [([1, 2], 2), ([1, 2], 2)]
