"""Increments and messages through a bad network and crashes: none is lost, none counts twice."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from headmark import Headmark, routes
from tests_server.conftest import World


def crash(world: World, times: int) -> threading.Thread:
    """Kills the server again and again while others write."""

    def run() -> None:
        for _ in range(times):
            time.sleep(0.6)
            world.server.kill()
            time.sleep(0.2)
            world.server.start()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def write(headmark: Headmark, worker: int) -> None:
    for number in range(10):
        headmark.send(routes.increment_badge(worker, "mention", by=2))
        headmark.send(
            routes.increment_badges(
                items=[
                    {"user_id": worker, "badge": "like"},
                    {"user_id": "99", "badge": "like", "by": 3},
                ]
            )
        )
        sent = routes.send_direct(99, sender_id=worker, client_id=f"{worker}-{number}", content="x")
        headmark.send(sent)
        if number % 5 == 0:
            # By hand, under a key of our own: as a job that runs again after a crash.
            for _ in range(2):
                key = f"mention-{worker}-{number}"
                call = routes.retract_badge(worker, "mention", by=1, idempotency_key=key)
                headmark.send(call)


def test_threads(world: World) -> None:
    world.proxy.badness = 0.3
    thread = crash(world, 3)
    with world.service() as headmark, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda worker: write(headmark, worker), (1, 2, 3, 4)))
    thread.join()
    for worker in (1, 2, 3, 4):
        counters = world.truth(str(worker))["counters"]
        assert counters["mention"] == {"unread": 18, "head": 20}
        assert counters["like"] == {"unread": 10, "head": 10}
    summary = world.truth("99")
    assert summary["counters"]["like"]["unread"] == 120
    assert summary["chats"]["unread"] == 40
    assert min(world.proxy.done.values()) > 0, "every fault was met"
    assert len(world.proxy.done) == 8


def test_tasks(world: World) -> None:
    world.proxy.badness = 0.3
    thread = crash(world, 2)

    async def write_all() -> None:
        async with world.async_service() as headmark:

            async def write(worker: int) -> None:
                for _ in range(10):
                    await headmark.send(routes.increment_badge("42", "mention"))
                    await headmark.send(routes.increment_badge(worker, "like", by=2))

            await asyncio.gather(*(write(worker) for worker in range(1, 9)))

    asyncio.run(write_all())
    thread.join()
    assert world.truth("42")["counters"]["mention"] == {"unread": 80, "head": 80}
    for worker in range(1, 9):
        assert world.truth(str(worker))["counters"]["like"]["unread"] == 20
