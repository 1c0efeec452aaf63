"""Functions of the app, for an event loop in a thread of its own. They may block and fail; the loop
must do neither."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def contained(function: Callable[P, T]) -> Callable[P, T]:
    """What it raises is an `Exception` that the loop can take. In a thread of its own, `sys.exit`
    would end the loop, and not the program. No future takes a `StopIteration`."""

    def call(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return function(*arguments, **options)
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, StopIteration):
                raise
            raise RuntimeError(f"a function of the app raised {type(error).__name__}") from error

    return call


def in_daemon(name: str, function: Callable[[], T]) -> asyncio.Future[T]:
    """Calls it in a thread of its own. A daemon, unlike the threads of `asyncio.to_thread`: neither
    the end of the loop nor that of the process waits for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            end = partial(future.set_result, contained(function)())
        except Exception as error:
            end = partial(future.set_exception, error)
        # RuntimeError: the loop has ended, and nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: future.done() or end())

    threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True).start()
    return future
