"""What the tests against the real server share."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from headmark import AsyncHeadmark, Headmark, Limits, routes
from headmark.types import UnreadSummaryOut
from tests_server.proxy import FaultyProxy
from tests_server.server import SERVICE_SECRET, Server, user_token
from tests_server.stores import TIERS

SPEED = 10.0
# Enough for the worst of the networks below: no request of a test is given up.
# By the clock below; so 2 s.
PATIENT = Limits(timeout_s=20.0, retries=200, total_s=1_000.0)


class FastClock:
    """Pauses take a tenth of their time, so that backoff does not make the tests slow."""

    def now(self) -> float:
        return time.monotonic() * SPEED

    def random(self) -> float:
        return random.random()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / SPEED)

    async def sleep_async(self, seconds: float) -> None:
        await asyncio.sleep(seconds / SPEED)


@dataclass
class World:
    server: Server
    proxy: FaultyProxy

    def service(self, limits: Limits = PATIENT) -> Headmark:
        """A backend, through the proxy."""
        url = self.proxy.base_url
        return Headmark(url, token=SERVICE_SECRET, limits=limits, clock=FastClock())

    def async_service(self) -> AsyncHeadmark:
        url = self.proxy.base_url
        return AsyncHeadmark(url, token=SERVICE_SECRET, limits=PATIENT, clock=FastClock())

    def user(self, user: str) -> Headmark:
        """A user whose first token has expired, as after a night."""
        token = [user_token(user, -3_600)]

        def renew(is_rejected: bool) -> str:
            if is_rejected:
                token[0] = user_token(user, 3_600)
            return token[0]

        return Headmark(self.proxy.base_url, token=renew, limits=PATIENT, clock=FastClock())

    def truth(self, user: str) -> UnreadSummaryOut:
        """What the server has, read past the proxy."""
        with self.server.client() as client:
            return client.send(routes.get_unread_summary(user))


@pytest.fixture(params=TIERS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    server = Server(request.param)
    proxy = FaultyProxy(sum(map(ord, request.node.name)), lambda: server.base_url)
    yield World(server, proxy)
    proxy.stop()
    server.remove()


@pytest.fixture(scope="module", params=TIERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """One for all tests of a module that do not break it. Each uses users of its own."""
    server = Server(request.param)
    yield server
    server.remove()


def eventually(check: Callable[[], Any], timeout_s: float = 40.0) -> None:
    """Until it raises no more. The longest pause takes 7 s by the clock above, and on a busy
    machine the request after it may fail as well."""
    until = time.monotonic() + timeout_s
    while True:
        try:
            check()
            return
        except AssertionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
