"""The poller and the inbox reader for threads. Each runs in an event loop in a thread of its own,
so that a request that is held can be cancelled."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import TypeVar

from typing_extensions import Unpack

from .client import Headmark
from .daemon import contained, in_daemon
from .inbox import AsyncInboxReader, InboxOptions
from .machines.inbox_types import InboxPosition, InboxStatus
from .machines.loop import Signal
from .machines.poller import UnreadView
from .machines.summary import ResetKind
from .poller import AsyncUnreadPoller, PollerOptions, nothing
from .types import Id, ItemOut

Self = TypeVar("Self", bound="_Background")


class _Background:
    """An event loop in a thread, from `start` to `stop`. It can be started once."""

    _inner: AsyncUnreadPoller | AsyncInboxReader

    def __init__(self, headmark: Headmark) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        # In which the thread runs.
        self._process: int | None = None
        self._client = headmark.to_async()
        # What is scheduled before a stop runs before the loop ends.
        self._lock = threading.Lock()
        self._is_stopped = False
        self._callback_thread: int | None = None

    def start(self) -> None:
        self._check_process()
        with self._lock:
            if self._is_stopped:
                raise RuntimeError("it was stopped: make another one")
            if not self._loop:
                self._loop = asyncio.new_event_loop()
                run = partial(self._run, self._loop)
                self._thread = threading.Thread(target=run, name="headmark", daemon=True)
                self._process = os.getpid()
                self._thread.start()
        self._call(self._inner.start)

    def stop(self) -> None:
        """As of the async one. Each stop waits for the end, unless a callback calls it."""
        if self._is_of_parent():
            return
        with self._lock:
            is_first = not self._is_stopped
            self._is_stopped = True
            loop, thread = self._loop, self._thread
            if not loop or not thread:
                return
            if is_first:
                done = asyncio.run_coroutine_threadsafe(self._stop(), loop)
                done.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
        if threading.get_ident() not in (thread.ident, self._callback_thread):
            thread.join()

    def refresh(self) -> None:
        """As of the async one."""
        self._call(self._inner.refresh)

    def signal(self, signal: Signal) -> None:
        """As of the async one."""
        self._call(self._inner.signal, signal)

    def _is_of_parent(self) -> bool:
        """It was started before a fork, and this is the child, which has no such thread. The lock
        is not taken: at the fork another thread may have held it."""
        return self._process not in (None, os.getpid())

    def _check_process(self) -> None:
        if self._is_of_parent():
            raise RuntimeError("it was started before a fork: make another one in the child")

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()

    async def _stop(self) -> None:
        await self._inner.stop()
        await self._client.close()

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        """Runs it in the loop, and returns when it is done."""

        async def run() -> None:
            function(*arguments)

        self._check_process()
        done: Future[None] | None = None
        with self._lock:
            if self._is_stopped:
                return
            # Without a loop: before the start, the machine only takes note.
            if self._loop and self._thread and threading.get_ident() != self._thread.ident:
                done = asyncio.run_coroutine_threadsafe(run(), self._loop)
        if done:
            done.result()
        else:
            function(*arguments)

    async def _in_thread(self, function: Callable[..., object], *arguments: object) -> None:
        """The app's transaction may block, and the loop must not."""

        def run() -> None:
            self._callback_thread = threading.get_ident()
            try:
                function(*arguments)
            finally:
                self._callback_thread = None

        await in_daemon("headmark-callback", run)

    def __enter__(self: Self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class UnreadPoller(_Background):
    """As `AsyncUnreadPoller`, for threads. Callbacks are called in the thread of the poller: they
    must not wait for a thread that calls the poller.

    `for view in poller` yields the newest view, whenever it changes, until `stop`.
    """

    _inner: AsyncUnreadPoller

    def __init__(
        self, headmark: Headmark, user: Id = "me", **options: Unpack[PollerOptions]
    ) -> None:
        super().__init__(headmark)
        self._changed = threading.Condition()
        self._on_view = contained(options.get("on_view", nothing))
        options["on_view"] = self._show
        options["on_refused"] = contained(options.get("on_refused", nothing))
        self._inner = AsyncUnreadPoller(self._client, user, **options)

    @property
    def view(self) -> UnreadView:
        """What to show now. The same object until it changes."""
        return self._inner.view

    def reset(self, kind: ResetKind, name: str, up_to: int | None = None) -> None:
        """As of the async one."""
        self._call(self._inner.reset, kind, name, up_to)

    def __iter__(self) -> Iterator[UnreadView]:
        seen: UnreadView | None = None
        while True:
            self._check_process()
            with self._changed:
                while self.view is seen and seen["status"] != "idle":
                    self._changed.wait()
                view = self.view
            if view is seen:
                return
            seen = view
            yield view

    def _show(self, view: UnreadView) -> None:
        with self._changed:
            self._changed.notify_all()
        self._on_view(view)


class InboxReader(_Background):
    """As `AsyncInboxReader`, for threads. `on_items` and `on_reset` may block: they are called one
    at a time, in a thread of their own. The other callbacks are called in the reader's thread: they
    must not wait for a thread that calls the reader."""

    _inner: AsyncInboxReader

    def __init__(
        self,
        headmark: Headmark,
        user: Id = "me",
        *,
        position: InboxPosition | None,
        on_items: Callable[[list[ItemOut], InboxPosition], object],
        on_reset: Callable[[], object],
        **options: Unpack[InboxOptions],
    ) -> None:
        super().__init__(headmark)
        options["on_gap"] = contained(options.get("on_gap", nothing))
        options["on_status"] = contained(options.get("on_status", nothing))
        self._inner = AsyncInboxReader(
            self._client,
            user,
            position=position,
            on_items=lambda items, position: self._in_thread(on_items, items, position),
            on_reset=lambda: self._in_thread(on_reset),
            **options,
        )

    @property
    def status(self) -> InboxStatus:
        return self._inner.status
