"""A model of the server, for the async clients in virtual time: it holds polls, loses answers,
refuses, hangs and is restored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import httpx

from headmark import AsyncHeadmark
from tests.fake import problem
from tests.virtual import LoopClock


@dataclass(frozen=True)
class Rows:
    epoch: int = 1
    revision: int = 1
    shared: int = 1
    head: int = 0
    mark: int = 0
    inbox: tuple[str, ...] = ()
    cursor: int = 0
    # Rows up to this one expired.
    floor: int = 0

    @property
    def tag(self) -> str:
        return f'W/"{self.epoch}.{self.revision}.{self.shared}"'

    def summary(self) -> dict[str, Any]:
        unread = self.head - self.mark
        return {
            "user_id": "42",
            "epoch": f"e{self.epoch}",
            "revision": self.revision,
            "shared_revision": self.shared,
            "degraded": False,
            "total": unread + self.shared,
            "counters": {"mention": {"unread": unread, "head": self.head}},
            "broadcasts": {"system": {"unread": self.shared, "head": self.shared}},
            "chats": {"unread": 0, "mentions": 0, "groups": 0, "directs": 0},
            "notifications": {},
        }


def item(seq: int, content: str) -> dict[str, Any]:
    return {"seq": seq, "sender_id": "7", "content": content, "sent_at": "2026-01-31T09:30:00.123Z"}


@dataclass
class Model:
    dice: Random
    badness: float = 0.0
    rows: Rows = field(default_factory=Rows)
    older: list[Rows] = field(default_factory=list)
    polls: list[float] = field(default_factory=list)
    polls_in_flight: int = 0
    cancelled: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def client(self) -> AsyncHeadmark:
        transport = httpx.MockTransport(self.handle)
        return AsyncHeadmark(
            "http://headmark.test", transport=transport, clock=LoopClock(self.dice)
        )

    def write(self, **changes: Any) -> None:
        self.older.append(self.rows)
        self.rows = replace(self.rows, **changes)
        self.changed.set()
        self.changed = asyncio.Event()

    def restore(self) -> None:
        back = self.dice.choice(self.older) if self.older else self.rows
        epoch = max(rows.epoch for rows in [*self.older, self.rows]) + 1
        self.older = []
        self.write(**{**vars(back), "epoch": epoch})
        self.older = []

    async def handle(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(self.dice.random() / 2)
        is_bad = self.dice.random() < self.badness
        fault = self.dice.choice(["before", "after", "refuse", "page", "hang"]) if is_bad else None
        if fault == "before":
            raise httpx.ConnectError("refused")
        if fault == "refuse":
            code = self.dice.choice(["overloaded", "rate_limited"])
            return problem(503 if code == "overloaded" else 429, code, "1")
        if fault == "page":
            return httpx.Response(502, content=b"<h1>502</h1>")
        if fault == "hang":
            await asyncio.sleep(1_000)
        response = await self.answer(request)
        if fault == "after":
            raise httpx.ReadError("cut off")
        await asyncio.sleep(self.dice.random() / 2)
        return response

    async def answer(self, request: httpx.Request) -> httpx.Response:
        handlers: dict[str, Callable[[httpx.Request], Awaitable[httpx.Response]]] = {
            "badges": self.poll,
            "inbox": self.page,
            "reset": self.reset,
            "cursor": self.put_cursor,
        }
        return await handlers[request.url.path.rsplit("/", 1)[1]](request)

    async def poll(self, request: httpx.Request) -> httpx.Response:
        assert self.polls_in_flight == 0, "one poll at a time"
        self.polls_in_flight += 1
        self.polls.append(asyncio.get_running_loop().time())
        tag = request.headers.get("if-none-match")
        try:
            is_new = await self.hold(request, lambda: tag != self.rows.tag)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.polls_in_flight -= 1
        headers = {"etag": self.rows.tag, "x-poll-interval": "30"}
        if not is_new:
            return httpx.Response(304, headers=headers)
        return httpx.Response(200, json=self.rows.summary(), headers=headers)

    async def hold(self, request: httpx.Request, is_new: Callable[[], bool]) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + float(request.url.params.get("wait", 0))
        while not is_new() and loop.time() < until:
            try:
                await asyncio.wait_for(self.changed.wait(), until - loop.time())
            except asyncio.TimeoutError:
                break
        return is_new()

    async def reset(self, request: httpx.Request) -> httpx.Response:
        up_to = json.loads(request.content)["up_to"]
        mark = max(self.rows.mark, min(up_to, self.rows.head))
        if mark != self.rows.mark:
            self.write(mark=mark, revision=self.rows.revision + 1)
        rows = self.rows
        body = {"head": rows.head, "revision": rows.revision, "unread": rows.head - rows.mark}
        return httpx.Response(200, json={"badge": "mention", **body})

    async def page(self, request: httpx.Request) -> httpx.Response:
        query = request.url.params
        after = int(query.get("after", self.rows.floor))
        if query.get("epoch") not in (None, f"i{self.rows.epoch}"):
            return problem(410, "inbox_reset")
        await self.hold(request, lambda: len(self.rows.inbox) > after)
        if after < self.rows.floor:
            return problem(410, "cursor_expired", earliest_seq=self.rows.floor + 1)
        limit = int(query["limit"])
        found = self.rows.inbox[after : after + limit]
        body = {
            "items": [item(after + 1 + n, content) for n, content in enumerate(found)],
            "epoch": f"i{self.rows.epoch}",
            "head": len(self.rows.inbox),
            "next_after": after + len(found),
            "has_more": after + len(found) < len(self.rows.inbox),
        }
        return httpx.Response(200, json=body)

    async def put_cursor(self, request: httpx.Request) -> httpx.Response:
        seq = json.loads(request.content)["seq"]
        if seq > len(self.rows.inbox):
            return problem(422, "invalid_body")
        # Without `write`: nobody waits for it.
        self.rows = replace(self.rows, cursor=max(seq, self.rows.cursor))
        return httpx.Response(200, json={"device_id": "phone", "cursor": self.rows.cursor})
