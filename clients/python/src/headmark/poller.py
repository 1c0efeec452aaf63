"""The poller for asyncio: it performs what the state machine decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

from typing_extensions import TypedDict, Unpack

from . import routes
from .call import Call
from .client import AsyncHeadmark
from .machines.poller import Poll, PollerState, UnreadView, initial_poller, step_poller
from .machines.resets import Refused, SendReset
from .machines.summary import ResetKind
from .runner import Looping, Runner, answer_of, call_safely, ended, looks_like
from .types import Id


class PollerOptions(TypedDict, total=False):
    # As in the route: which kinds, a bound on the counts, which views.
    include: str
    cap: int
    views: str
    # How long the server may hold a poll; by default 30. 0: it polls at the server's pace.
    wait_s: int
    # How long an answer may take beyond `wait_s`; by default 10.
    timeout_s: float
    # Called when the view changes. Keep it short.
    on_view: Callable[[UnreadView], object]
    # Called when the server refuses a reset, and the number is back.
    on_refused: Callable[[Refused], object]


def nothing(*_: object) -> None:
    """For callbacks that the app leaves out."""


def check_names(options: Mapping[str, object], known: type) -> None:
    """A typo must not be silent for those who do not check types."""
    unknown = options.keys() - known.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")


class AsyncUnreadPoller(Looping[PollerState]):
    """Keeps a user's unread summary up to date, from `start` to `stop`.

    `async for view in poller` yields the newest view, whenever it changes.
    """

    def __init__(
        self,
        headmark: AsyncHeadmark,
        user: Id = "me",
        **options: Unpack[PollerOptions],
    ) -> None:
        check_names(options, PollerOptions)
        self._headmark = headmark
        self._user = user
        cap = options.get("cap")
        self._query: dict[str, Any] = {
            "include": options.get("include"),
            "cap": cap,
            "views": options.get("views"),
        }
        self._on_view = options.get("on_view", nothing)
        self._on_refused = options.get("on_refused", nothing)
        wait_s = options.get("wait_s", 30)
        state = initial_poller({"wait_s": wait_s, "cap": cap})
        runner = Runner(state, step_poller, self._perform, headmark.clock)
        super().__init__(runner, options.get("timeout_s", 10.0))
        self._changed = asyncio.Event()

    @property
    def view(self) -> UnreadView:
        """What to show now. The same object until it changes."""
        return self._runner.state.view

    def reset(self, kind: ResetKind, name: str, up_to: int | None = None) -> None:
        """Shows the badge as read at once, and tells the server. Without `up_to`: up to the head
        that is shown. Before the first answer nothing is shown. A reset with `up_to` waits for it;
        another one does nothing."""
        event = {"type": "reset", "kind": kind, "name": name}
        self._runner.send(event if up_to is None else {**event, "up_to": up_to})

    async def __aiter__(self) -> AsyncIterator[UnreadView]:
        seen: UnreadView | None = None
        while True:
            view = self.view
            if view is not seen:
                seen = view
                yield view
            elif view["status"] == "idle":
                return
            else:
                await self._changed.wait()

    def _perform(self, effect: Any) -> None:
        if effect["type"] == "poll":
            self._runner.start(effect["id"], partial(ended, self._poll, effect, "answer"))
        elif effect["type"] == "send_reset":
            work = partial(ended, self._send_reset, effect, "reset_answer")
            self._runner.start(effect["id"], work)
        elif effect["type"] == "show":
            self._changed.set()
            self._changed = asyncio.Event()
            call_safely(self._on_view, effect["view"])
        else:
            call_safely(self._on_refused, effect)

    async def _poll(self, effect: Poll) -> Any:
        call = routes.get_unread_summary(self._user, **self._query, wait=effect["wait_s"])
        answer = await self._headmark.fetch(
            call, tag=effect["tag"], retries=0, timeout_s=self._timeout_s
        )
        event: dict[str, Any] = {"type": "answer", **answer_of(answer, effect["id"])}
        if answer.etag is not None:
            event["tag"] = answer.etag
        if looks_like(answer.data, epoch=str, degraded=bool):
            event["body"] = answer.data
        return event

    async def _send_reset(self, effect: SendReset) -> Any:
        call = reset_call(self._user, effect["kind"], effect["name"], effect["up_to"])
        answer = await self._headmark.fetch(call, retries=0, timeout_s=self._timeout_s)
        event: dict[str, Any] = {"type": "reset_answer", **answer_of(answer, effect["id"])}
        if looks_like(answer.data, head=int, revision=int):
            event["body"] = answer.data
        return event


def reset_call(user: Id, kind: ResetKind, name: str, up_to: int) -> Call[Any]:
    if kind == "counters":
        return routes.reset_badge(user, name, up_to=up_to)
    if kind == "broadcasts":
        return routes.read_broadcasts(user, name, up_to=up_to)
    return routes.clear_dot(user, name, up_to=up_to)
