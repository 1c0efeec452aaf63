"""The inbox reader for asyncio: it performs what the state machine decides."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import partial
from typing import Any

from typing_extensions import TypedDict, Unpack

from . import routes
from .client import AsyncHeadmark
from .machines.cursor import PutCursor
from .machines.inbox import initial_inbox, step_inbox
from .machines.inbox_types import Fetch, Gap, InboxPosition, InboxState, InboxStatus
from .machines.loop import Trouble
from .poller import check_names, nothing
from .runner import Looping, Runner, answer_of, call_safely, ended, looks_like
from .types import Id, ItemOut

logger = logging.getLogger("headmark")

OnItems = Callable[[list[ItemOut], InboxPosition], "Awaitable[None] | None"]
OnReset = Callable[[], "Awaitable[None] | None"]


class InboxOptions(TypedDict, total=False):
    # The id of this device: its cursor keeps rows on the server until they are fetched.
    device: str
    # Hears of items that expired before they were fetched.
    on_gap: Callable[[Gap], object]
    on_status: Callable[[InboxStatus, Trouble | None], object]
    # How long the server may hold a request; by default 30.
    wait_s: int
    # How long an answer may take beyond `wait_s`; by default 10.
    timeout_s: float
    # Items in a page, 1 to 100; by default 100.
    limit: int
    # The least time between two updates of the device's cursor; by default 5.
    cursor_gap_s: float


class AsyncInboxReader(Looping[InboxState]):
    """Hands every item of a user's inbox to the app, once and in order, from `start` to `stop`."""

    def __init__(
        self,
        headmark: AsyncHeadmark,
        user: Id = "me",
        *,
        position: InboxPosition | None,
        on_items: OnItems,
        on_reset: OnReset,
        **options: Unpack[InboxOptions],
    ) -> None:
        """`position` is what the app stored with its last items; None on a new device.

        `on_items(items, position)` stores both in one transaction. The next items come when it
        returns. When it raises, the same items come again. After `on_gap` there are no items,
        but a position. `on_reset()` drops the position and keeps the items: the server was
        restored, or its database failed over. Everything that the server still keeps comes again,
        with the number that it had. What it has lost does not, and its numbers may go to others.
        """
        check_names(options, InboxOptions)
        self._headmark = headmark
        self._user = user
        self._device = options.get("device")
        self._on_items, self._on_reset = on_items, on_reset
        self._on_gap = options.get("on_gap", nothing)
        self._on_status = options.get("on_status", nothing)
        wait_s, limit = options.get("wait_s", 30), options.get("limit", 100)
        cursor_gap_ms = round(options.get("cursor_gap_s", 5.0) * 1_000) if self._device else None
        state = initial_inbox(
            {"wait_s": wait_s, "limit": limit, "cursor_gap_ms": cursor_gap_ms}, position
        )
        runner = Runner(state, step_inbox, self._perform, headmark.clock)
        super().__init__(runner, options.get("timeout_s", 10.0))

    @property
    def status(self) -> InboxStatus:
        return self._runner.state.status

    def _perform(self, effect: Any) -> None:
        if effect["type"] == "fetch":
            self._runner.start(effect["id"], partial(ended, self._fetch, effect, "answer"))
        elif effect["type"] == "put_cursor":
            work = partial(ended, self._put_cursor, effect, "cursor_answer")
            self._runner.start(effect["id"], work)
        elif effect["type"] in ("deliver", "reset"):
            work = partial(self._deliver, effect)
            self._runner.start(effect["id"], work, lost="not_delivered")
        elif effect["type"] == "gap":
            call_safely(self._on_gap, effect)
        else:
            call_safely(self._on_status, effect["status"], effect["trouble"])

    async def _deliver(self, effect: Any) -> Any:
        try:
            if effect["type"] == "reset":
                done = self._on_reset()
            else:
                # Copies: the app may change them, and the same items may have to come again.
                done = self._on_items(deepcopy(effect["items"]), deepcopy(effect["position"]))
            if inspect.isawaitable(done):
                await done
        except Exception:
            logger.exception("the app could not store a delivery; it comes again")
            return {"type": "not_delivered", "id": effect["id"]}
        return {"type": "delivered", "id": effect["id"]}

    async def _fetch(self, effect: Fetch) -> Any:
        call = routes.get_inbox(
            self._user,
            after=effect["after"],
            epoch=effect["epoch"],
            wait=effect["wait_s"],
            limit=effect["limit"],
        )
        answer = await self._headmark.fetch(call, retries=0, timeout_s=self._timeout_s)
        event: dict[str, Any] = {"type": "answer", **answer_of(answer, effect["id"])}
        if is_page(answer.data):
            event["body"] = answer.data
        return event

    async def _put_cursor(self, effect: PutCursor) -> Any:
        call = routes.put_cursor(self._user, self._device or "", seq=effect["seq"])
        answer = await self._headmark.fetch(call, retries=0, timeout_s=self._timeout_s)
        return {"type": "cursor_answer", **answer_of(answer, effect["id"])}


def is_page(data: Any) -> bool:
    is_one = looks_like(data, items=list, epoch=str, next_after=int, has_more=bool)
    return is_one and all(looks_like(item, seq=int) for item in data["items"])
