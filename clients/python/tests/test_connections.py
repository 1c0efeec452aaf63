"""Many polls of one client, over real connections to a server of this process that holds them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from headmark import AsyncHeadmark, AsyncUnreadPoller, Headmark, Limits, NoAnswerError, routes

# More than httpx opens connections unless it is told.
POLLERS = 110
# How long the server may hold a poll. Enough for a machine that is busy.
WAIT_S = 55
SUMMARY = (
    '{"user_id": "42", "epoch": "e", "revision": %d, "shared_revision": 0, "degraded": false,'
    ' "total": 1, "counters": {"mention": {"unread": 1, "head": 1}}}'
)


class Holder:
    """Answers the first poll of a user at once, and holds the next until `change`. Everything else
    is answered at once."""

    def __init__(self) -> None:
        self.revision = 1
        self.changed = asyncio.Event()
        self.held = 0
        self.resets = 0
        self.connections = 0
        self.base_url = ""
        self._serving: set[asyncio.Task[None]] = set()

    def change(self) -> None:
        self.revision += 1
        self.changed.set()
        self.changed = asyncio.Event()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def end(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:-2])
                await reader.readexactly(int(fields.get("content-length", 0)))
                body = await self._answer(head.split()[1])
                start = f'HTTP/1.1 200 OK\r\netag: "{self.revision}"\r\n'
                writer.write(f"{start}content-length: {len(body)}\r\n\r\n{body}".encode())
                await writer.drain()

    async def _answer(self, target: str) -> str:
        url = httpx.URL(target)
        if url.path.endswith("/reset"):
            self.resets += 1
            return f'{{"badge": "mention", "unread": 0, "head": 1, "revision": {self.revision}}}'
        if "wait" in url.params:
            self.held += 1
            try:
                await self.changed.wait()
            finally:
                self.held -= 1
        return SUMMARY % self.revision


@contextlib.asynccontextmanager
async def holding() -> AsyncIterator[Holder]:
    holder = Holder()
    server = await asyncio.start_server(holder.accept, "127.0.0.1", 0, backlog=2 * POLLERS)
    holder.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield holder
    finally:
        server.close()
        await holder.end()


async def until(check: Callable[[], bool]) -> None:
    """Less than a poll lasts, so that what waits for the end of one comes too late."""
    limit = time.monotonic() + WAIT_S - 5
    while not check():
        assert time.monotonic() < limit
        await asyncio.sleep(0.01)


def test_one_client_carries_many_pollers() -> None:
    async def story() -> None:
        async with holding() as holder, AsyncHeadmark(holder.base_url) as client:
            pollers = [
                AsyncUnreadPoller(client, user, wait_s=WAIT_S) for user in range(1, POLLERS + 1)
            ]
            for poller in pollers:
                poller.start()
            await until(lambda: holder.held == POLLERS)
            pollers[-1].reset("counters", "mention")
            await until(lambda: holder.resets == 1)
            holder.change()
            await until(lambda: holder.held == POLLERS)
            assert {poller.view["status"] for poller in pollers} == {"live"}
            await asyncio.gather(*(poller.stop() for poller in pollers))

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_bound_on_connections(kind: str) -> None:
    limits = Limits(timeout_s=0.5, retries=0, max_connections=2)

    async def story() -> None:
        async with holding() as holder, AsyncHeadmark(holder.base_url, limits=limits) as client:
            with Headmark(holder.base_url, limits=limits) as sync:
                in_thread: Any = partial(asyncio.to_thread, sync.send)  # type: ignore[arg-type]
                send = in_thread if kind == "sync" else client.send
                held = [
                    asyncio.create_task(send(routes.get_unread_summary(42, wait=WAIT_S)))
                    for _ in range(2)
                ]
                await until(lambda: holder.held == 2)
                with pytest.raises(NoAnswerError):
                    await send(routes.get_unread_summary(42))
                assert holder.connections == 2
                holder.change()
                await asyncio.gather(*held)

    asyncio.run(story())


def test_more_threads_than_httpx_has_connections() -> None:
    async def story() -> None:
        async with holding() as holder:
            with (
                Headmark(holder.base_url) as client,
                ThreadPoolExecutor(max_workers=POLLERS) as threads,
            ):
                call = routes.get_unread_summary(42, wait=WAIT_S)
                held = [threads.submit(client.send, call) for _ in range(POLLERS)]
                await until(lambda: holder.held == POLLERS)
                holder.change()
                await asyncio.gather(*map(asyncio.wrap_future, held))

    asyncio.run(story())
