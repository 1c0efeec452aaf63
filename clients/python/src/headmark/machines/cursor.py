"""The device's cursor on the server: what it has stored, put now and then. The server keeps rows
for as long as a device that was seen recently has not fetched them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from typing_extensions import TypedDict

from ..pace import pause_of, retry_after_ms
from .loop import AnswerFields, Cancel, can_repeat, next_id, start_sleep

if TYPE_CHECKING:
    from .inbox_types import InboxDraft


class PutCursor(TypedDict):
    type: Literal["put_cursor"]
    id: int
    seq: int


@dataclass(frozen=True)
class CursorTask:
    type: Literal["request", "sleep"]
    id: int
    seq: int = 0


@dataclass(frozen=True)
class CursorState:
    # The last cursor that the server has.
    sent: int = 0
    not_before: int = 0
    # As long as the server asked for, also at a stop.
    paused_until: int = 0
    failures: int = 0
    task: CursorTask | None = None


def put(draft: InboxDraft) -> None:
    """Puts the cursor if it has moved, or sleeps until it may be put."""
    state = draft.state
    if not state.running:
        # What ends after a stop may have moved it.
        put_last(draft)
        return
    cursor, position, gap_ms = state.cursor, state.position, state.config["cursor_gap_ms"]
    if gap_ms is None or position is None or cursor.task:
        return
    if state.offline or position["after"] <= cursor.sent:
        return
    not_before = max(cursor.not_before, cursor.paused_until)
    if draft.now < not_before:
        _sleep(draft, not_before - draft.now)
    else:
        _send(draft, position["after"], gap_ms)


def put_last(draft: InboxDraft) -> None:
    """At a stop and after it: at once."""
    state = draft.state
    task, position, gap_ms = state.cursor.task, state.position, state.config["cursor_gap_ms"]
    if task and task.type == "sleep":
        draft.effects.append(Cancel(type="cancel", id=task.id))
        state.cursor = replace(state.cursor, task=None)
    if gap_ms is None or position is None or state.offline or state.cursor.task:
        return
    if draft.now >= state.cursor.paused_until and position["after"] > state.cursor.sent:
        _send(draft, position["after"], gap_ms)


def forget(draft: InboxDraft) -> None:
    """Numbers begin again after a reset, and so does the cursor. When it may be put stays as it
    is."""
    cursor = draft.state.cursor
    if cursor.task:
        draft.effects.append(Cancel(type="cancel", id=cursor.task.id))
    draft.state.cursor = replace(cursor, sent=0, task=None)


def answered(draft: InboxDraft, id: int, answer: AnswerFields | None) -> None:
    """None: no answer came."""
    cursor = draft.state.cursor
    task = cursor.task
    if task is None or task.type != "request" or task.id != id:
        return
    if answer and answer["status"] == 401:
        # Nobody may say so now. It is put again when the loop goes on: after the next items, or
        # after signing in.
        draft.state.cursor = replace(cursor, failures=0, task=None)
        return
    if answer and (200 <= answer["status"] < 300 or not can_repeat(answer)):
        # A refused cursor counts as put until it moves. Reading goes on: the app has its position.
        draft.state.cursor = replace(cursor, sent=task.seq, failures=0, task=None)
        if answer["status"] < 300:
            put(draft)
        return
    failures = cursor.failures + 1
    retry_after_s = answer.get("retry_after_s") if answer else None
    paused_until = draft.now + retry_after_ms(retry_after_s)
    draft.state.cursor = replace(cursor, failures=failures, paused_until=paused_until, task=None)
    if draft.state.running:
        _sleep(draft, *pause_of(failures, retry_after_s))


def wake(draft: InboxDraft, id: int) -> None:
    cursor = draft.state.cursor
    if cursor.task and cursor.task.id == id:
        draft.state.cursor = replace(cursor, task=None)
        put(draft)


def _send(draft: InboxDraft, seq: int, gap_ms: int) -> None:
    task = CursorTask("request", next_id(draft), seq)
    draft.state.cursor = replace(draft.state.cursor, not_before=draft.now + gap_ms, task=task)
    draft.effects.append(PutCursor(type="put_cursor", id=task.id, seq=seq))


def _sleep(draft: InboxDraft, ms: int, jitter_ms: int | None = None) -> None:
    task = CursorTask("sleep", start_sleep(draft, ms, jitter_ms))
    draft.state.cursor = replace(draft.state.cursor, task=task)
