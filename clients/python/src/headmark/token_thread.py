"""Calls the app's token function, which may block, for an event loop, which must not."""

from __future__ import annotations

import asyncio

from .daemon import in_daemon
from .tokens import Tokens, Used


class TokenThread:
    """Each call has a thread of its own. No call begins while the same one runs: a function that
    hangs keeps one thread, and not one for each attempt."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self.can_renew = tokens.can_renew
        self._running: dict[Used | None, asyncio.Future[Used | None]] = {}

    async def get(self, rejected: Used | None) -> Used | None:
        if not self.can_renew:
            return self._tokens.get()
        running = self._running.get(rejected) or self._start(rejected)
        # An attempt whose time is over gives up. The next one, or another request, waits on.
        return await asyncio.shield(running)

    def _start(self, rejected: Used | None) -> asyncio.Future[Used | None]:
        future = in_daemon("headmark-token", lambda: self._tokens.get(rejected))
        self._running[rejected] = future
        future.add_done_callback(lambda _: self._running.pop(rejected))
        return future
