"""The inbox reader's states, events and effects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from typing_extensions import NotRequired, TypedDict

from ..types import InboxOut, ItemOut
from . import cursor
from .loop import (
    AnswerFields,
    Cancel,
    CommandEvent,
    Draft,
    Failed,
    LoopState,
    Sleep,
    Trouble,
    Woke,
)

InboxStatus = Literal["idle", "reading", "live", "retrying", "paused", "failed"]


class InboxPosition(TypedDict):
    """Up to where a device has the inbox. Store it in one transaction with the items."""

    epoch: str
    after: int


class InboxConfig(TypedDict):
    # How long the server may hold a request; 0: never.
    wait_s: int
    # Items in a page.
    limit: int
    # The least time between two updates of the device's cursor; None: there is no device.
    cursor_gap_ms: int | None


@dataclass(frozen=True)
class Delivery:
    """What the app has to store before the reader goes on. Without a position: a reset."""

    items: list[ItemOut] = field(default_factory=list)
    position: InboxPosition | None = None
    has_more: bool = False


@dataclass
class InboxState(LoopState):
    config: InboxConfig = field(
        default_factory=lambda: InboxConfig(wait_s=30, limit=100, cursor_gap_ms=None)
    )
    # None: nothing was read yet, or everything is to be read again.
    position: InboxPosition | None = None
    # What the app has not confirmed yet.
    delivery: Delivery | None = None
    # Everything up to the head was delivered.
    has_all: bool = False
    cursor: cursor.CursorState = field(default_factory=cursor.CursorState)
    status: InboxStatus = "idle"


class PageAnswer(AnswerFields):
    type: Literal["answer"]
    body: NotRequired[InboxOut]
    earliest_seq: NotRequired[int]


class CursorAnswer(AnswerFields):
    type: Literal["cursor_answer"]


class Delivered(TypedDict):
    """The app stored a delivery, or its transaction failed."""

    type: Literal["delivered", "not_delivered"]
    id: int


class Fetch(TypedDict):
    type: Literal["fetch"]
    id: int
    after: int | None
    epoch: str | None
    wait_s: int | None
    limit: int


class Deliver(TypedDict):
    """Hand the items to the app; none after a gap. Answer with `delivered` once they and the
    position are stored."""

    type: Literal["deliver"]
    id: int
    items: list[ItemOut]
    position: InboxPosition


class DropAll(TypedDict):
    """The app drops its position. Answer with `delivered`."""

    type: Literal["reset"]
    id: int


class Gap(TypedDict):
    """Items after `after` and before `earliest_seq` expired before the device fetched them."""

    type: Literal["gap"]
    after: int
    earliest_seq: int


class ShowStatus(TypedDict):
    type: Literal["status"]
    status: InboxStatus
    trouble: Trouble | None


Ended = PageAnswer | CursorAnswer | Delivered | Failed | Woke
InboxEvent = CommandEvent | Ended
InboxEffect = Sleep | Cancel | Fetch | Deliver | DropAll | Gap | cursor.PutCursor | ShowStatus
InboxDraft = Draft[InboxState]
