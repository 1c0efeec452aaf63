"""Functions of the app that may block, for an event loop, which must not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TypeVar

T = TypeVar("T")


def in_daemon(name: str, function: Callable[[], T]) -> asyncio.Future[T]:
    """Calls it in a thread of its own. A daemon, unlike the threads of `asyncio.to_thread`: neither
    the end of the loop nor that of the process waits for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            end = partial(future.set_result, function())
        except StopIteration as error:
            # No future takes it: the loop would wait for ever.
            failed = RuntimeError("a function of the app raised StopIteration")
            failed.__cause__ = error
            end = partial(future.set_exception, failed)
        except BaseException as error:
            end = partial(future.set_exception, error)
        # RuntimeError: the loop has ended, and nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: future.done() or end())

    threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True).start()
    return future
