"""Calls the app's token function, which may block, for an event loop, which must not."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from functools import partial

from .tokens import Tokens, Used


class TokenThread:
    """Each call has a thread of its own. No call begins while the same one runs: a function that
    hangs keeps one thread, and not one for each attempt.

    A daemon, unlike the threads of `asyncio.to_thread`: neither the end of the loop nor that of the
    process waits for it.
    """

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
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Used | None] = loop.create_future()
        self._running[rejected] = future
        future.add_done_callback(lambda _: self._running.pop(rejected))

        def run() -> None:
            try:
                end = partial(future.set_result, self._tokens.get(rejected))
            except BaseException as error:
                end = partial(future.set_exception, error)
            # RuntimeError: the loop has ended, and nobody waits any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end)

        threading.Thread(target=run, name="headmark-token", daemon=True).start()
        return future
