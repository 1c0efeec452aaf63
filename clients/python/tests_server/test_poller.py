"""The poller and the real server: whatever lies between them, the user sees what the server has."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from headmark import AsyncHeadmark, AsyncUnreadPoller, UnreadPoller, UnreadView, routes
from headmark.machines.summary import ResetKind
from tests_server.conftest import FastClock, World, eventually
from tests_server.server import SERVICE_SECRET

USER = "42"
FAST: Any = {"wait_s": 1, "timeout_s": 1.0}


def check_order(views: list[UnreadView]) -> None:
    """Within an epoch, nothing that was shown is older than what was shown before."""
    shown = [view["summary"] for view in views if view["summary"]]
    assert shown
    for before, after in pairwise(shown):
        if before["epoch"] == after["epoch"]:
            assert after["revision"] >= before["revision"]
            for badge, counter in before["counters"].items():
                assert after["counters"][badge]["head"] >= counter["head"]


@pytest.mark.parametrize("seed", [1, 2])
def test_writes_and_resets_through_a_bad_network(world: World, seed: int) -> None:
    dice = Random(seed)
    views: list[UnreadView] = []
    world.proxy.badness = 0.4
    with (
        world.server.client() as service,
        world.user(USER) as phone,
        world.user(USER) as tablet,
        UnreadPoller(phone, on_view=views.append, **FAST) as poller,
        UnreadPoller(tablet, **FAST) as other,
    ):
        for _ in range(80):
            kind, badge = dice.randrange(8), dice.choice(["mention", "like"])
            reset: tuple[ResetKind, str] = ("counters", badge)
            if kind < 3:
                service.send(routes.increment_badge(USER, badge))
            elif kind == 3:
                service.send(routes.send_broadcast("system", title="News"))
            elif kind == 4:
                service.send(routes.light_dot("mall"))
            elif kind == 5:
                poller.reset(*reset)
            elif kind == 6:
                poller.reset("broadcasts", "system")
            else:
                other.reset("dots", "mall")
            time.sleep(dice.random() * 0.05)
        world.proxy.badness = 0.0

        def both_have_all() -> None:
            summary = world.truth(USER)
            assert poller.view == {"status": "live", "summary": summary, "trouble": None}
            assert other.view["summary"] == summary

        eventually(both_have_all)
    check_order(views)


def test_a_server_that_hangs_is_killed_and_restored(world: World) -> None:
    views: list[UnreadView] = []
    with (
        world.user(USER) as phone,
        UnreadPoller(phone, on_view=views.append, **FAST) as poller,
    ):

        def shows_the_truth() -> None:
            summary = world.truth(USER)
            assert poller.view == {"status": "live", "summary": summary, "trouble": None}

        def shows(status: str) -> None:
            assert poller.view["status"] == status

        def increment(times: int) -> None:
            with world.server.client() as service:
                for _ in range(times):
                    service.send(routes.increment_badge(USER, "mention"))

        eventually(shows_the_truth)
        world.server.pause()
        eventually(lambda: shows("retrying"))
        world.server.resume()
        increment(2)
        eventually(shows_the_truth)
        world.server.back_up()
        increment(10)
        eventually(shows_the_truth)
        world.server.kill()
        eventually(lambda: shows("retrying"))
        world.server.start()
        eventually(shows_the_truth)
        world.server.restore()
        world.proxy.badness = 0.3
        increment(1)
        eventually(shows_the_truth)
        summary = poller.view["summary"]
        assert summary
        assert summary["total"] == 3
    epochs = [view["summary"]["epoch"] for view in views if view["summary"]]
    assert len(set(epochs)) == 2
    check_order(views)


def test_behind_a_proxy_that_drops_tags_polls_do_not_wait(world: World) -> None:
    views: list[UnreadView] = []
    world.proxy.drops_tags = True
    with (
        world.server.client() as service,
        world.user(USER) as phone,
        UnreadPoller(phone, on_view=views.append, **FAST) as poller,
    ):

        def shows_the_truth() -> None:
            summary = world.truth(USER)
            assert poller.view == {"status": "live", "summary": summary, "trouble": None}

        for _ in range(2):
            service.send(routes.increment_badge(USER, "mention"))
            eventually(shows_the_truth)
    assert "failed" not in {view["status"] for view in views}


def test_a_poll_that_is_held_brings_news_at_once(world: World) -> None:
    def both_are_sent() -> None:
        assert world.proxy.done["none"] == 2

    async def story() -> None:
        client = AsyncHeadmark(world.proxy.base_url, token=SERVICE_SECRET, clock=FastClock())
        async with client, AsyncUnreadPoller(client, USER, wait_s=20) as poller:
            # The first one, and one that is held.
            await asyncio.to_thread(eventually, both_are_sent)
            await asyncio.sleep(1)
            assert world.proxy.done["none"] == 2, "nothing is sent while nothing happens"
            started = time.monotonic()
            await client.send(routes.increment_badge(USER, "mention"))
            async for view in poller:
                if view["summary"] and view["summary"]["total"] == 1:
                    break
            assert time.monotonic() - started < 1.0

    asyncio.run(story())
