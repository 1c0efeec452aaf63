"""The readers of `/v1/events`, and a file for their position."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from .call import Answer, Call
from .client import AsyncHeadmark, Headmark
from .errors import HeadmarkError
from .machines.events import (
    Ask,
    EventsGap,
    EventsPosition,
    Handle,
    Outcome,
    Pause,
    Save,
    read_events,
)
from .poller import nothing
from .types import EventOut


class PositionStore(Protocol):
    """Where the position is kept. None: the reader begins with the oldest event that is kept."""

    def load(self) -> EventsPosition | None: ...

    def save(self, position: EventsPosition) -> None: ...


class AsyncPositionStore(Protocol):
    def load(self) -> Awaitable[EventsPosition | None]: ...

    def save(self, position: EventsPosition) -> Awaitable[None]: ...


class FileStore:
    """Keeps the position in a file. A crash leaves the old one or the new one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def load(self) -> EventsPosition | None:
        try:
            return cast(EventsPosition, json.loads(self._path.read_text()))
        except FileNotFoundError:
            return None

    def save(self, position: EventsPosition) -> None:
        new = self._path.with_name(self._path.name + ".new")
        with new.open("w") as file:
            json.dump(position, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)


class EventsReader:
    """`for event in reader` yields every event at least once, in order, for ever. `pages` yields
    them in lists.

    An event counts as handled when the loop asks for the next one. The position is saved when all
    events of a page are handled. So a crash, an exception or a `break` in the loop brings the
    events of the page again: drop those whose `id` you have, or make repeats harmless.

    It goes through outages by itself. Other problems, such as a rejected token, are raised.
    """

    def __init__(
        self,
        headmark: Headmark,
        store: PositionStore,
        *,
        limit: int = 100,
        wait_s: int = 30,
        types: Sequence[str] | None = None,
        on_gap: Callable[[EventsGap], object] = nothing,
    ) -> None:
        """`limit`: events in a page, 1 to 1000. `types`: such as `["unread"]`; all by default.
        `on_gap` hears that events are missing or come again. It hears of it again after a crash
        before the next page is handled."""
        self._headmark, self._store, self._on_gap = headmark, store, on_gap
        self._limit, self._wait_s, self._types = limit, wait_s, types

    def __iter__(self) -> Iterator[EventOut]:
        for page in self.pages():
            yield from page

    def pages(self) -> Iterator[list[EventOut]]:
        clock = self._headmark.clock
        steps = read_events(
            self._store.load(),
            limit=self._limit,
            wait_s=self._wait_s,
            types=self._types,
            now_ms=lambda: clock.now() * 1_000,
        )
        outcome: Outcome = None
        while True:
            step = steps.send(outcome)
            outcome = None
            if isinstance(step, Ask):
                outcome = self._ask(step.call)
            elif isinstance(step, Pause):
                clock.sleep((step.ms + clock.random() * step.jitter_ms) / 1_000)
            elif isinstance(step, Handle):
                yield step.events
            elif isinstance(step, Save):
                self._store.save(step.position)
            else:
                self._on_gap(step)

    def _ask(self, call: Call[Any]) -> Answer[Any] | HeadmarkError:
        try:
            return self._headmark.fetch(call, retries=0)
        except HeadmarkError as error:
            return error


class AsyncEventsReader:
    """As `EventsReader`, for asyncio. The store and `on_gap` may be async, too."""

    def __init__(
        self,
        headmark: AsyncHeadmark,
        store: PositionStore | AsyncPositionStore,
        *,
        limit: int = 100,
        wait_s: int = 30,
        types: Sequence[str] | None = None,
        on_gap: Callable[[EventsGap], object] = nothing,
    ) -> None:
        self._headmark, self._store, self._on_gap = headmark, store, on_gap
        self._limit, self._wait_s, self._types = limit, wait_s, types

    async def __aiter__(self) -> AsyncIterator[EventOut]:
        async for page in self.pages():
            for event in page:
                yield event

    async def pages(self) -> AsyncIterator[list[EventOut]]:
        clock = self._headmark.clock
        steps = read_events(
            await awaited(self._store.load()),
            limit=self._limit,
            wait_s=self._wait_s,
            types=self._types,
            now_ms=lambda: clock.now() * 1_000,
        )
        outcome: Outcome = None
        while True:
            step = steps.send(outcome)
            outcome = None
            if isinstance(step, Ask):
                outcome = await self._ask(step.call)
            elif isinstance(step, Pause):
                await clock.sleep_async((step.ms + clock.random() * step.jitter_ms) / 1_000)
            elif isinstance(step, Handle):
                yield step.events
            elif isinstance(step, Save):
                await awaited(self._store.save(step.position))
            else:
                await awaited(self._on_gap(step))

    async def _ask(self, call: Call[Any]) -> Answer[Any] | HeadmarkError:
        try:
            return await self._headmark.fetch(call, retries=0)
        except HeadmarkError as error:
            return error


async def awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
