"""The poller against a model of the server, in virtual time, all the way through HTTP."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random
from typing import Any

import httpx
import pytest

from headmark import AsyncHeadmark, AsyncUnreadPoller, Headmark, UnreadPoller, UnreadView
from tests.fake import problem
from tests.model import Model
from tests.virtual import LoopClock, run


def check_order(views: list[UnreadView]) -> None:
    """Within an epoch, nothing is older than what was shown before."""
    shown = [view["summary"] for view in views if view["summary"]]
    for before, after in pairwise(shown):
        if before["epoch"] == after["epoch"]:
            assert after["revision"] >= before["revision"]
            if after["revision"] == before["revision"]:
                assert after.get("shared_revision", 0) >= before.get("shared_revision", 0)


async def simulate(seed: int) -> None:
    dice = Random(seed)
    model = Model(dice, badness=0.35)
    views: list[UnreadView] = []
    async with model.client() as client:
        poller = AsyncUnreadPoller(client, "42", on_view=views.append)
        async with poller:
            for _ in range(60):
                await asyncio.sleep(dice.random() * 3)
                act(model, poller, dice)
            model.badness = 0.0
            poller.signal("visible")
            poller.signal("online")
            await asyncio.sleep(300)
            summary = model.rows.summary()
            assert poller.view == {"status": "live", "summary": summary, "trouble": None}
            before = len(model.polls)
            await asyncio.sleep(300)
            assert len(model.polls) - before <= 11, "polls while nothing happens"
            assert len(poller._runner._running) == 1, "nothing is kept of what has ended"
        assert poller.view["status"] == "idle"
        assert model.polls_in_flight == 0
    check_order(views)


def act(model: Model, poller: AsyncUnreadPoller, dice: Random) -> None:
    rows, kind = model.rows, dice.randrange(12)
    if kind < 4:
        model.write(head=rows.head + 1, revision=rows.revision + 1)
    elif kind < 6:
        model.write(shared=rows.shared + 1)
    elif kind < 8:
        poller.reset("counters", "mention")
    elif kind == 8:
        poller.refresh()
    elif kind < 11:
        poller.signal(dice.choice(["hidden", "visible", "visible", "offline", "online", "online"]))
    elif dice.random() < 0.3:
        model.restore()


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens(seed: int) -> None:
    run(simulate(seed))


def test_a_stop_cancels_the_poll_and_waits_for_the_reset() -> None:
    async def story() -> None:
        model = Model(Random(1))
        model.write(head=3, revision=2)
        async with model.client() as client:
            async with AsyncUnreadPoller(client, "42") as poller:
                await asyncio.sleep(5)
                assert model.polls_in_flight == 1
                poller.reset("counters", "mention")
                summary = poller.view["summary"]
                assert summary
                assert summary["counters"]["mention"]["unread"] == 0
            assert (model.cancelled, model.polls_in_flight) == (1, 0)
            assert model.rows.mark == 3

    run(story())


def test_every_view_can_be_iterated() -> None:
    async def story() -> list[int]:
        model = Model(Random(1))
        totals = []
        async with model.client() as client, AsyncUnreadPoller(client, "42") as poller:
            async for view in poller:
                if not view["summary"]:
                    continue
                totals.append(view["summary"]["total"])
                if len(totals) == 3:
                    await poller.stop()
                model.write(shared=model.rows.shared + 1)
        return totals

    # The last one is that of the stopped poller.
    assert run(story()) == [1, 2, 3, 3]


def test_iterations_end_with_a_poller_that_has_failed() -> None:
    async def story() -> list[str]:
        statuses: list[str] = []
        refusal = problem(403, "forbidden")
        transport = httpx.MockTransport(lambda _: refusal)
        async with (
            AsyncHeadmark("http://h", transport=transport, clock=LoopClock()) as client,
            AsyncUnreadPoller(client, "42") as poller,
        ):
            stopping = asyncio.get_running_loop().call_later(
                5, lambda: asyncio.ensure_future(poller.stop())
            )
            async for view in poller:
                statuses.append(view["status"])
            assert stopping.when() <= asyncio.get_running_loop().time()
        return statuses

    assert run(story()) == ["loading", "failed", "idle"]


def test_a_refused_reset_and_a_callback_that_fails() -> None:
    async def story() -> list[Any]:
        model = Model(Random(1))
        model.write(head=3, revision=2)
        refused: list[Any] = []

        async def handle(request: httpx.Request) -> httpx.Response:
            if request.method == "POST":
                return problem(403, "forbidden")
            return await model.handle(request)

        def fail(view: UnreadView) -> None:
            raise RuntimeError("the app's bug")

        transport = httpx.MockTransport(handle)
        async with AsyncHeadmark("http://h", transport=transport, clock=LoopClock()) as client:
            options: Any = {"on_refused": refused.append, "on_view": fail}
            async with AsyncUnreadPoller(client, "42", **options) as poller:
                await asyncio.sleep(2)
                poller.reset("counters", "mention")
                await asyncio.sleep(2)
                assert poller.view["status"] == "live"
                assert poller.view["summary"] == model.rows.summary()
        return refused

    trouble = {"status": 403, "code": "forbidden"}
    expected = {"type": "refused", "kind": "counters", "name": "mention", "trouble": trouble}
    assert run(story()) == [expected]


def test_the_machine_retries_and_not_the_client() -> None:
    """So the app sees at once that what is shown may be old."""

    async def story() -> list[UnreadView]:
        views: list[UnreadView] = []
        requests: list[httpx.Request] = []

        def handle(request: httpx.Request) -> httpx.Response:
            requests.append(request)
            return problem(503, "overloaded", "5")

        transport = httpx.MockTransport(handle)
        async with (
            AsyncHeadmark("http://h", transport=transport, clock=LoopClock()) as client,
            AsyncUnreadPoller(client, "42", on_view=views.append),
        ):
            await asyncio.sleep(4)
            assert len(requests) == 1
            await asyncio.sleep(2)
            assert len(requests) == 2
        return views

    trouble = {"status": 503, "code": "overloaded"}
    assert run(story())[1] == {"summary": None, "status": "retrying", "trouble": trouble}


@pytest.mark.parametrize("body", [{}, {"epoch": "e"}, {"epoch": 5, "degraded": False}])
def test_the_json_of_something_else_is_an_outage(body: Any) -> None:
    async def story() -> None:
        model = Model(Random(1))
        foreign = 2

        async def handle(request: httpx.Request) -> httpx.Response:
            nonlocal foreign
            foreign -= 1
            return httpx.Response(200, json=body) if foreign >= 0 else await model.handle(request)

        transport = httpx.MockTransport(handle)
        async with (
            AsyncHeadmark("http://h", transport=transport, clock=LoopClock()) as client,
            AsyncUnreadPoller(client, "42") as poller,
        ):
            await asyncio.sleep(0.5)
            trouble = {"status": 200, "code": "unexpected_answer"}
            assert poller.view == {"summary": None, "status": "retrying", "trouble": trouble}
            await asyncio.sleep(9)
            assert poller.view["status"] == "live"

    run(story())


def test_a_typo_in_an_option() -> None:
    with pytest.raises(TypeError, match="waits_s"):
        UnreadPoller(Headmark("http://h"), "42", waits_s=5)  # type: ignore[call-arg]
