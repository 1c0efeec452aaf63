"""Resets on their way. The app shows them as done at once. Each is sent until it is answered,
because a repeat changes nothing. A refusal brings the number back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from typing_extensions import NotRequired, TypedDict

from ..pace import pause_of, retry_after_ms
from ..types import UnreadSummaryOut
from .loop import (
    AnswerFields,
    Cancel,
    Task,
    Trouble,
    can_repeat,
    next_id,
    start_sleep,
    trouble_of,
)
from .summary import ResetBody, ResetKind, head_of, with_answer

if TYPE_CHECKING:
    from .poller import PollerDraft, PollerState


@dataclass(frozen=True)
class Reset:
    kind: ResetKind
    name: str
    # What the user saw.
    up_to: int
    # The `up_to` of the request in flight.
    sent_up_to: int = 0
    failures: int = 0
    # The server asked not to send it before.
    not_before: int = 0
    # None: it waits to be online, for a start, or for the first answer.
    task: Task | None = None


class ResetEvent(TypedDict):
    """The user saw a badge. Without `up_to`: up to the head that is shown."""

    type: Literal["reset"]
    kind: ResetKind
    name: str
    up_to: NotRequired[int]


class ResetAnswer(AnswerFields):
    type: Literal["reset_answer"]
    body: NotRequired[ResetBody]


class SendReset(TypedDict):
    type: Literal["send_reset"]
    id: int
    kind: ResetKind
    name: str
    up_to: int


class Refused(TypedDict):
    """A reset was refused for good; the number is back."""

    type: Literal["refused"]
    kind: ResetKind
    name: str
    trouble: Trouble


def add(draft: PollerDraft, event: ResetEvent) -> None:
    state = draft.state
    kind, name = event["kind"], event["name"]
    up_to = event.get("up_to", head_of(state.view["summary"], kind, name))
    if up_to is None:
        # The user cannot have seen what was never shown, unless the app knows better.
        return
    pending = next((r for r in state.resets if (r.kind, r.name) == (kind, name)), None)
    if pending and pending.up_to >= up_to:
        return
    reset = replace(pending or Reset(kind, name, up_to), up_to=up_to)
    state.resets = (*(other for other in state.resets if other is not pending), reset)
    if reset.task is None:
        _send(draft, reset)


def send_held(draft: PollerDraft) -> None:
    """Sends what waited to be online, for a start, or for the first answer."""
    for reset in draft.state.resets:
        if reset.task is None:
            _send(draft, reset)


def hold(draft: PollerDraft) -> None:
    """Cancels the sleeps of resets, which then wait. Requests in flight continue."""
    for reset in draft.state.resets:
        if reset.task and reset.task.type == "sleep":
            draft.effects.append(Cancel(type="cancel", id=reset.task.id))
            _replace(draft, reset, replace(reset, task=None))


def drop(draft: PollerDraft) -> None:
    """In another epoch, heads name other things. What is in flight is forgotten, too."""
    for reset in draft.state.resets:
        if reset.task:
            draft.effects.append(Cancel(type="cancel", id=reset.task.id))
    draft.state.resets = ()


def answer(draft: PollerDraft, event: ResetAnswer) -> None:
    reset = _by_task(draft, event["id"])
    if reset is None:
        return
    if event["status"] == 200 and "body" in event:
        _take(draft, reset, event["body"])
        if reset.up_to > reset.sent_up_to:
            rest = replace(reset, task=None, failures=0)
            _replace(draft, reset, rest)
            _send(draft, rest)
        else:
            _replace(draft, reset, None)
    elif can_repeat(event):
        _retry(draft, reset, event.get("retry_after_s"))
    else:
        _replace(draft, reset, None)
        refused = Refused(
            type="refused", kind=reset.kind, name=reset.name, trouble=trouble_of(event)
        )
        draft.effects.append(refused)


def fail(draft: PollerDraft, id: int) -> None:
    """No answer: the reset may have taken effect or not."""
    reset = _by_task(draft, id)
    if reset:
        _retry(draft, reset)


def wake(draft: PollerDraft, id: int) -> None:
    reset = _by_task(draft, id)
    if reset:
        _send(draft, reset)


def _take(draft: PollerDraft, reset: Reset, body: ResetBody) -> None:
    state = draft.state
    revision = body["revision"]
    if state.known is None or not _is_newer(state, state.known, revision):
        return
    known = with_answer(state.known, reset, body, state.config["cap"])
    state.known = cast(UnreadSummaryOut, {**known, "revision": revision})
    if revision > state.revision:
        state.shared_revision = None
    state.revision = revision


def _is_newer(state: PollerState, known: UnreadSummaryOut, revision: int) -> bool:
    """At the same revision, a whole poll has what this answer says, and maybe a later broadcast or
    dot."""
    is_polled = state.shared_revision is not None and not known["degraded"]
    return revision > state.revision or (revision == state.revision and not is_polled)


def _send(draft: PollerDraft, reset: Reset) -> None:
    state = draft.state
    # Without a first answer, the one to this reset could not be compared with those to polls.
    if state.offline or not state.running or state.known is None:
        _replace(draft, reset, replace(reset, task=None))
        return
    if draft.now < reset.not_before:
        _sleep(draft, reset, reset.not_before - draft.now)
        return
    id = next_id(draft)
    _replace(draft, reset, replace(reset, sent_up_to=reset.up_to, task=Task("request", id)))
    sent = SendReset(type="send_reset", id=id, kind=reset.kind, name=reset.name, up_to=reset.up_to)
    draft.effects.append(sent)


def _retry(draft: PollerDraft, reset: Reset, retry_after_s: float | None = None) -> None:
    failures = reset.failures + 1
    # What the server asks for also holds after a stop and a start.
    not_before = draft.now + retry_after_ms(retry_after_s)
    failed = replace(reset, failures=failures, not_before=not_before, task=None)
    _replace(draft, reset, failed)
    if draft.state.running:
        _sleep(draft, failed, *pause_of(failures, retry_after_s))


def _sleep(draft: PollerDraft, reset: Reset, ms: int, jitter_ms: int | None = None) -> None:
    task = Task("sleep", start_sleep(draft, ms, jitter_ms))
    _replace(draft, reset, replace(reset, task=task))


def _by_task(draft: PollerDraft, id: int) -> Reset | None:
    return next((r for r in draft.state.resets if r.task and r.task.id == id), None)


def _replace(draft: PollerDraft, reset: Reset, by: Reset | None) -> None:
    replaced = (by if other is reset else other for other in draft.state.resets)
    draft.state.resets = tuple(other for other in replaced if other is not None)
