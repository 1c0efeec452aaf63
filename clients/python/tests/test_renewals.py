"""A renewal of a rejected token is shared: it may be good only once, as with refresh tokens."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from headmark import AsyncHeadmark, Headmark, ProblemError, UnreadPoller, routes
from tests.fake import problem
from tests.virtual import LoopClock, run

GET = routes.get_settings("42")
SUMMARY = {"user_id": "42", "epoch": "e", "revision": 1, "degraded": False, "counters": {}}


class App:
    """Gives its newest token. Only that is good."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.takes_s = takes_s
        self.number = 1
        self.good = 2
        self.renewals = 0
        self.error: Exception | None = None

    def give(self) -> str:
        return f"t{self.number}"

    def renew(self) -> str:
        self.renewals += 1
        if self.error:
            raise self.error
        self.number += 1
        return self.give()

    async def async_token(self, is_rejected: bool) -> str:
        if is_rejected:
            await asyncio.sleep(self.takes_s)
        return self.renew() if is_rejected else self.give()

    def token(self, is_rejected: bool) -> str:
        if is_rejected:
            time.sleep(self.takes_s)
        return self.renew() if is_rejected else self.give()

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.headers["authorization"] != f"Bearer t{self.good}":
            return problem(401, "unauthorized")
        return httpx.Response(200, json=SUMMARY, headers={"etag": '"1"'})


def client(
    token: Callable[[bool], Awaitable[str]], answer: Callable[[httpx.Request], object]
) -> AsyncHeadmark:
    transport = httpx.MockTransport(answer)  # type: ignore[arg-type]
    return AsyncHeadmark("http://h", token=token, transport=transport, clock=LoopClock())


def test_requests_at_once_share_a_renewal() -> None:
    async def story(takes_s: float) -> None:
        app = App(takes_s)
        number = 0

        async def answer(request: httpx.Request) -> httpx.Response:
            nonlocal number
            number += 1
            # Some are rejected only after the renewal.
            await asyncio.sleep(number % 7)
            return app.answer(request)

        async with client(app.async_token, answer) as headmark:
            await asyncio.gather(*(headmark.send(GET) for _ in range(30)))
        assert app.renewals == 1
        assert number == 60

    for takes_s in (0.0, 2.5):
        run(story(takes_s))


def test_threads_share_a_renewal() -> None:
    app = App(0.05)
    transport = httpx.MockTransport(app.answer)
    with (
        Headmark("http://h", token=app.token, transport=transport) as headmark,
        ThreadPoolExecutor(20) as pool,
    ):
        list(pool.map(lambda _: headmark.send(GET), range(60)))
    assert app.renewals == 1


def test_threads_of_different_users_keep_their_tokens() -> None:
    """Each has a renewal of its own, and none is sent with the token of another one."""
    own = threading.local()
    renewed: list[str] = []

    def token(is_rejected: bool) -> str:
        if is_rejected:
            renewed.append(own.user)
        time.sleep(0.005)
        return f"{own.user}.{renewed.count(own.user)}"

    def answer(request: httpx.Request) -> httpx.Response:
        user = request.url.path.split("/")[3]
        scheme, _, given = request.headers["authorization"].partition(" ")
        assert (scheme, given.partition(".")[0]) == ("Bearer", user)
        return httpx.Response(200, json={}) if given == f"{user}.1" else problem(401, "x")

    def send(number: int) -> None:
        own.user = str(number % 5)
        headmark.send(routes.get_settings(own.user))

    transport = httpx.MockTransport(answer)
    with (
        Headmark("http://h", token=token, transport=transport) as headmark,
        ThreadPoolExecutor(10) as pool,
    ):
        list(pool.map(send, range(40)))
    assert set(renewed) == set("01234")


def test_pollers_of_a_client_share_a_renewal() -> None:
    app = App(0.05)
    everyone = threading.Barrier(4)

    def answer(request: httpx.Request) -> httpx.Response:
        return app.answer(request)

    transport = httpx.MockTransport(answer)
    with Headmark("http://h", token=app.token, transport=transport) as headmark:
        pollers = [UnreadPoller(headmark, "42", wait_s=0) for _ in range(3)]

        def watch(poller: UnreadPoller) -> None:
            everyone.wait(10)
            with poller:
                next(view for view in poller if view["status"] == "live")

        threads = [threading.Thread(target=watch, args=(poller,)) for poller in pollers]
        for thread in threads:
            thread.start()
        everyone.wait(10)
        headmark.send(GET)
        for thread in threads:
            thread.join(10)
    assert app.renewals == 1


def test_a_renewal_that_fails_fails_all_that_wait_for_it() -> None:
    """They do not call the function one after the other. The next 401 calls it again."""

    async def story() -> None:
        app = App(5.0)
        app.error = OSError("signed out")

        async def answer(request: httpx.Request) -> httpx.Response:
            return app.answer(request)

        async with client(app.async_token, answer) as headmark:
            sending = [headmark.send(GET) for _ in range(10)]
            outcomes = await asyncio.gather(*sending, return_exceptions=True)
            assert outcomes == [app.error] * 10
            assert app.renewals == 1
            assert asyncio.get_running_loop().time() == 5
            app.error = None
            await headmark.send(GET)
            assert app.renewals == 2

    run(story())


def test_threads_share_a_renewal_that_fails() -> None:
    app = App(0.5)
    app.error = OSError("signed out")
    together = threading.Barrier(10)

    def answer(request: httpx.Request) -> httpx.Response:
        if app.error:
            together.wait(10)
        return app.answer(request)

    def send(_: int) -> object:
        try:
            return headmark.send(GET)
        except OSError as error:
            return error

    transport = httpx.MockTransport(answer)
    with (
        Headmark("http://h", token=app.token, transport=transport) as headmark,
        ThreadPoolExecutor(10) as pool,
    ):
        assert list(pool.map(send, range(10))) == [app.error] * 10
        # One more where a thread comes late.
        assert app.renewals <= 2
        app.error = None
        headmark.send(GET)
        assert app.number == app.good


def test_renewals_of_different_users_do_not_wait_for_each_other() -> None:
    own = threading.local()
    together = threading.Barrier(2)

    def token(is_rejected: bool) -> str:
        if is_rejected:
            together.wait(10)
        return f"{own.user}.new" if is_rejected else f"{own.user}.old"

    def answer(request: httpx.Request) -> httpx.Response:
        is_new = request.headers["authorization"].endswith(".new")
        return httpx.Response(200, json={}) if is_new else problem(401, "unauthorized")

    def send(user: str) -> None:
        own.user = user
        headmark.send(GET)

    transport = httpx.MockTransport(answer)
    with (
        Headmark("http://h", token=token, transport=transport) as headmark,
        ThreadPoolExecutor(2) as pool,
    ):
        list(pool.map(send, "ab"))


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_another_thread_renews_where_one_ends(error: type[BaseException]) -> None:
    """What ends a thread is not for others."""
    app = App()
    waits, begun = threading.Event(), threading.Event()

    def token(is_rejected: bool) -> str:
        if is_rejected and not begun.is_set():
            begun.set()
            waits.wait(10)
            raise error
        return app.token(is_rejected)

    def end() -> None:
        with pytest.raises(error):
            headmark.send(GET)

    transport = httpx.MockTransport(app.answer)
    with (
        Headmark("http://h", token=token, transport=transport) as headmark,
        ThreadPoolExecutor(2) as pool,
    ):
        ending = pool.submit(end)
        assert begun.wait(10)
        other = pool.submit(headmark.send, GET)
        time.sleep(0.1)
        waits.set()
        ending.result(10)
        other.result(10)
    assert app.renewals == 1


def test_a_token_that_the_function_has_replaced_is_not_renewed() -> None:
    async def story() -> None:
        app = App()

        async def answer(request: httpx.Request) -> httpx.Response:
            response = app.answer(request)
            await asyncio.sleep(5)
            return response

        async with client(app.async_token, answer) as headmark:
            early = asyncio.create_task(headmark.send(GET))
            await asyncio.sleep(1)
            app.number = 2
            await headmark.send(GET)
            await early
        assert app.renewals == 0

    run(story())


def test_a_token_that_was_asked_for_before_a_renewal_is_older() -> None:
    async def story() -> None:
        app = App()
        is_slow = False

        async def token(is_rejected: bool) -> str:
            given = await app.async_token(is_rejected)
            await asyncio.sleep(9 if is_slow and not is_rejected else 0)
            return given

        async def answer(request: httpx.Request) -> httpx.Response:
            await asyncio.sleep(1)
            return app.answer(request)

        async with client(token, answer) as headmark:
            first = asyncio.create_task(headmark.send(GET))
            await asyncio.sleep(0.5)
            is_slow = True
            await asyncio.gather(first, headmark.send(GET, timeout_s=20))
        assert app.renewals == 1

    run(story())


def test_the_replacement_may_be_rejected_as_well() -> None:
    async def story() -> None:
        app = App()
        app.good = 3

        async def answer(request: httpx.Request) -> httpx.Response:
            await asyncio.sleep(5)
            return app.answer(request)

        async with client(app.async_token, answer) as headmark:
            early = asyncio.create_task(headmark.send(GET))
            await asyncio.sleep(1)
            app.number = 2
            later = asyncio.create_task(headmark.send(GET))
            await asyncio.gather(early, later)
        assert app.renewals == 1

    run(story())


def test_a_renewal_that_does_not_help() -> None:
    async def story() -> None:
        app = App()
        app.good = 99
        requests = 0

        async def answer(request: httpx.Request) -> httpx.Response:
            nonlocal requests
            requests += 1
            return app.answer(request)

        async with client(app.async_token, answer) as headmark:
            sending = [asyncio.create_task(headmark.send(GET)) for _ in range(10)]
            for task in sending:
                with pytest.raises(ProblemError, match="unauthorized"):
                    await task
        assert app.renewals <= 2
        assert requests <= 3 * 10

    run(story())


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_another_request_renews_where_one_gives_up(is_cancelled: bool) -> None:
    async def story() -> None:
        app = App()
        hangs = True

        async def token(is_rejected: bool) -> str:
            if is_rejected and hangs:
                await asyncio.sleep(1_000_000)
            return await app.async_token(is_rejected)

        async def answer(request: httpx.Request) -> httpx.Response:
            return app.answer(request)

        async with client(token, answer) as headmark:
            first = asyncio.create_task(headmark.send(GET, retries=0, timeout_s=5))
            await asyncio.sleep(1)
            second = asyncio.create_task(headmark.send(GET, retries=0, timeout_s=20))
            await asyncio.sleep(1)
            hangs = False
            if is_cancelled:
                first.cancel()
            await second
            await asyncio.wait([first])
        assert app.renewals == 1

    run(story())
