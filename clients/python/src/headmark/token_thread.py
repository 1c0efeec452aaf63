"""Calls the app's token function, which may block, for an event loop, which must not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial


class TokenThread:
    """Each call has a thread of its own. No call begins while the same one runs: a function that
    hangs keeps one thread, and not one for each attempt.

    A daemon, unlike the threads of `asyncio.to_thread`: neither the end of the loop nor that of the
    process waits for it.
    """

    def __init__(self, function: Callable[[bool], str]) -> None:
        self._function = function
        self._running: dict[bool, asyncio.Future[str]] = {}

    async def __call__(self, is_rejected: bool) -> str:
        running = self._running.get(is_rejected) or self._start(is_rejected)
        # An attempt whose time is over gives up. The next one, or another request, waits on.
        return await asyncio.shield(running)

    def _start(self, is_rejected: bool) -> asyncio.Future[str]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()
        self._running[is_rejected] = future
        future.add_done_callback(lambda _: self._running.pop(is_rejected))

        def run() -> None:
            try:
                end = partial(future.set_result, self._function(is_rejected))
            except BaseException as error:
                end = partial(future.set_exception, error)
            # RuntimeError: the loop has ended, and nobody waits any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end)

        threading.Thread(target=run, name="headmark-token", daemon=True).start()
        return future
