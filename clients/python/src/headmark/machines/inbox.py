"""The inbox reader: hands each item to the app once and in order. The next page is not asked for
before the app has stored this one."""

from __future__ import annotations

from copy import copy

from typing_extensions import TypeIs

from ..pace import MIN_GAP_MS, is_early
from ..types import InboxOut
from . import cursor
from .inbox_types import (
    Deliver,
    Delivery,
    DropAll,
    Ended,
    Fetch,
    Gap,
    InboxConfig,
    InboxDraft,
    InboxEffect,
    InboxEvent,
    InboxPosition,
    InboxState,
    InboxStatus,
    PageAnswer,
    ShowStatus,
)
from .loop import (
    NO_ANSWER,
    UNEXPECTED,
    Task,
    command,
    common_status,
    may_request,
    next_id,
    refuse,
    retry,
    sleep,
    succeed,
    take_pace,
)


def initial_inbox(config: InboxConfig, position: InboxPosition | None) -> InboxState:
    """Starts from where the app's storage is; None for a new device."""
    return InboxState(config=config, position=position)


def step_inbox(
    before: InboxState, event: InboxEvent, now: int
) -> tuple[InboxState, list[InboxEffect]]:
    draft = InboxDraft(copy(before), [], now)
    _apply(draft, event)
    state = draft.state
    own: InboxStatus = "live" if state.has_all else "reading"
    state.status = common_status(state) or own
    if (state.status, state.trouble) != (before.status, before.trouble):
        draft.effects.append(ShowStatus(type="status", status=state.status, trouble=state.trouble))
    return state, draft.effects


def _apply(draft: InboxDraft, event: InboxEvent) -> None:
    if _is_ended(event):
        task = draft.state.task
        if task and task.id == event["id"]:
            _end(draft, event, task)
        else:
            _end_cursor(draft, event)
    elif command(draft, event["type"]):
        cursor.put(draft)
        _next(draft)
    elif event["type"] == "stop":
        cursor.put_last(draft)


def _is_ended(event: InboxEvent) -> TypeIs[Ended]:
    """Only what takes time has an id."""
    return "id" in event


def _end(draft: InboxDraft, event: Ended, task: Task) -> None:
    """What the loop waited for has happened."""
    if event["type"] == "answer":
        if task.type == "request":
            _answer(draft, event, task)
    elif event["type"] == "delivered":
        _delivered(draft)
    elif event["type"] == "not_delivered":
        retry(draft, {"status": 0, "code": "not_delivered"})
    elif event["type"] == "failed":
        retry(draft, NO_ANSWER)
    elif event["type"] == "woke":
        draft.state.task = None
        _next(draft)


def _end_cursor(draft: InboxDraft, event: Ended) -> None:
    """Of the cursor, or of something that was cancelled."""
    if event["type"] == "cursor_answer":
        cursor.answered(draft, event["id"], event)
    elif event["type"] == "failed":
        cursor.answered(draft, event["id"], None)
    elif event["type"] == "woke":
        cursor.wake(draft, event["id"])


def _next(draft: InboxDraft) -> None:
    """What comes next: the delivery that the app has not stored, or a request, or a sleep."""
    state, now = draft.state, draft.now
    if not state.running or state.failed or state.task:
        return
    if state.delivery:
        _deliver(draft, state.delivery)
        return
    if not may_request(state):
        return
    if now < state.not_before:
        sleep(draft, state.not_before - now)
        return
    position, wait_s = state.position, state.config["wait_s"]
    can_wait = position and not state.asks_at_once and wait_s > 0
    task = Task("request", next_id(draft), now, wait_s if can_wait else None)
    state.task = task
    state.not_before = now + MIN_GAP_MS
    fetch = Fetch(
        type="fetch",
        id=task.id,
        after=position["after"] if position else None,
        epoch=position["epoch"] if position else None,
        wait_s=task.wait_s,
        limit=state.config["limit"],
    )
    draft.effects.append(fetch)


def _deliver(draft: InboxDraft, delivery: Delivery) -> None:
    id = next_id(draft)
    draft.state.delivery = delivery
    draft.state.task = Task("delivery", id)
    if delivery.position is None:
        draft.effects.append(DropAll(type="reset", id=id))
        return
    draft.effects.append(
        Deliver(type="deliver", id=id, items=delivery.items, position=delivery.position)
    )


def _answer(draft: InboxDraft, event: PageAnswer, task: Task) -> None:
    state = draft.state
    status, code = event["status"], event.get("code")
    take_pace(state, event)
    if status == 410 and code == "inbox_reset":
        _reset(draft)
    elif status == 410 and code == "cursor_expired" and "earliest_seq" in event and state.position:
        _skip(draft, state.position, event["earliest_seq"])
    elif status != 200 or "body" not in event:
        refuse(draft, event)
    elif state.position and state.position["epoch"] != event["body"]["epoch"]:
        _reset(draft)
    elif task.wait_s is None:
        # Of a request that did not wait, the next one does.
        _take(draft, event["body"], is_held=state.config["wait_s"] > 0)
    else:
        is_held = not is_early(draft.now - task.started_at, task.wait_s)
        _take(draft, event["body"], is_held)


def _take(draft: InboxDraft, page: InboxOut, is_held: bool) -> None:
    state = draft.state
    after = state.position["after"] if state.position else 0
    if page["has_more"] and page["next_after"] <= after:
        # It would come again and again, without a pause.
        retry(draft, {"status": 200, "code": UNEXPECTED})
        return
    succeed(state)
    items = [item for item in page["items"] if item["seq"] > after]
    position: InboxPosition = {"epoch": page["epoch"], "after": max(after, page["next_after"])}
    if page["has_more"]:
        state.not_before = draft.now
    if items:
        _deliver(draft, Delivery(items, position, page["has_more"]))
        return
    state.position = position
    state.has_all = not page["has_more"]
    if page["has_more"] or is_held:
        _next(draft)
    else:
        sleep(draft, state.interval_ms)


def _delivered(draft: InboxDraft) -> None:
    state = draft.state
    delivery = state.delivery
    succeed(state)
    state.delivery = None
    if delivery and delivery.position:
        state.position = delivery.position
        state.has_all = not delivery.has_more
        # After a gap, whether there is more.
        state.asks_at_once = not delivery.items
        cursor.put(draft)
    _next(draft)


def _reset(draft: InboxDraft) -> None:
    """The numbers start again: the app drops its position, and the reader fetches what is kept."""
    succeed(draft.state)
    draft.state.position = None
    draft.state.has_all = False
    cursor.forget(draft)
    _deliver(draft, Delivery())


def _skip(draft: InboxDraft, position: InboxPosition, earliest_seq: int) -> None:
    succeed(draft.state)
    after = position["after"]
    draft.effects.append(Gap(type="gap", after=after, earliest_seq=earliest_seq))
    # The app stores the position, or it would hear of the same gap at every start.
    beyond: InboxPosition = {**position, "after": max(after, earliest_seq - 1)}
    _deliver(draft, Delivery([], beyond, has_more=True))
