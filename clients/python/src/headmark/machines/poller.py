"""The poller: keeps an unread summary up to date."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Literal

from typing_extensions import NotRequired, TypedDict

from ..pace import MIN_GAP_MS, is_early, pause_of
from ..types import UnreadSummaryOut
from . import resets
from .loop import (
    NO_ANSWER,
    AnswerFields,
    Cancel,
    CommandEvent,
    Draft,
    Failed,
    LoopState,
    Sleep,
    Task,
    Trouble,
    Woke,
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
from .summary import keep_missing, with_resets

PollerStatus = Literal["idle", "loading", "live", "retrying", "paused", "failed"]


class UnreadView(TypedDict):
    """What the app shows."""

    # With resets on their way taken off; None before the first answer.
    summary: UnreadSummaryOut | None
    status: PollerStatus
    # With `retrying` and `failed`: the reason.
    trouble: Trouble | None


class PollerConfig(TypedDict):
    # How long the server may hold a poll; 0: never.
    wait_s: int
    # The `cap` of the polls, so that answers to resets are shown alike.
    cap: int | None


@dataclass
class PollerState(LoopState):
    config: PollerConfig = field(default_factory=lambda: PollerConfig(wait_s=30, cap=None))
    tag: str | None = None
    # False: tags do not reach the server, so that it holds no poll.
    may_wait: bool = True
    known: UnreadSummaryOut | None = None
    # Answers below it are older; -1: nothing is known.
    revision: int = -1
    # Answers at `revision` below it are older; None: there is nothing to compare with.
    shared_revision: int | None = None
    resets: tuple[resets.Reset, ...] = ()
    view: UnreadView = field(
        default_factory=lambda: UnreadView(summary=None, status="idle", trouble=None)
    )


class PollAnswer(AnswerFields):
    type: Literal["answer"]
    tag: NotRequired[str]
    body: NotRequired[UnreadSummaryOut]


class Poll(TypedDict):
    type: Literal["poll"]
    id: int
    wait_s: int | None
    tag: str | None


class Show(TypedDict):
    type: Literal["show"]
    view: UnreadView


PollerEvent = CommandEvent | resets.ResetEvent | PollAnswer | resets.ResetAnswer | Failed | Woke
PollerEffect = Sleep | Cancel | Poll | resets.SendReset | Show | resets.Refused
PollerDraft = Draft[PollerState]


def initial_poller(config: PollerConfig) -> PollerState:
    return PollerState(config=config)


def step_poller(
    before: PollerState, event: PollerEvent, now: int
) -> tuple[PollerState, list[PollerEffect]]:
    draft = PollerDraft(copy(before), [], now)
    _apply(draft, event)
    view = _view_of(draft.state)
    if view != before.view:
        draft.state.view = view
        draft.effects.append(Show(type="show", view=view))
    return draft.state, draft.effects


def _apply(draft: PollerDraft, event: PollerEvent) -> None:
    task = draft.state.task
    if event["type"] == "reset":
        resets.add(draft, event)
    elif event["type"] == "reset_answer":
        resets.answer(draft, event)
    elif event["type"] == "answer":
        if task and task.type == "request" and task.id == event["id"]:
            _answer(draft, event, task)
    elif event["type"] == "failed":
        if task and task.id == event["id"]:
            retry(draft, NO_ANSWER)
        else:
            resets.fail(draft, event["id"])
    elif event["type"] == "woke":
        if task and task.id == event["id"]:
            _poll(draft)
        else:
            resets.wake(draft, event["id"])
    elif event["type"] == "stop":
        command(draft, "stop")
        resets.hold(draft)
    else:
        goes_on = command(draft, event["type"])
        if goes_on or event["type"] == "online":
            resets.send_held(draft)
        if goes_on:
            draft.state.may_wait = True
            _poll(draft)


def _view_of(state: PollerState) -> UnreadView:
    summary = state.known and with_resets(state.known, state.resets)
    own: PollerStatus = "live" if state.known else "loading"
    return {
        "summary": summary,
        "status": common_status(state) or own,
        "trouble": state.trouble,
    }


def _poll(draft: PollerDraft) -> None:
    """Sends a poll, or sleeps until one may be sent."""
    state, now = draft.state, draft.now
    state.task = None
    if not may_request(state):
        return
    if now < state.not_before:
        sleep(draft, state.not_before - now)
        return
    can_wait = _can_wait(state) and not state.asks_at_once
    wait_s = state.config["wait_s"] if can_wait else None
    state.task = Task("request", next_id(draft), now, wait_s)
    state.not_before = now + MIN_GAP_MS
    draft.effects.append(Poll(type="poll", id=state.task.id, wait_s=wait_s, tag=state.tag))


def _can_wait(state: PollerState) -> bool:
    """A wait without a tag would be a hot loop."""
    return state.may_wait and state.tag is not None and state.config["wait_s"] > 0


def _answer(draft: PollerDraft, event: PollAnswer, task: Task) -> None:
    state = draft.state
    take_pace(state, event)
    is_held = task.wait_s is None or not is_early(draft.now - task.started_at, task.wait_s)
    if event["status"] == 200 and "body" in event:
        failures = state.failures + 1
        is_news = not _is_known(state, event["body"])
        succeed(state)
        if not _accept(draft, event["body"], event.get("tag")):
            # A newer one overtook it. Ask again soon, but never in a hot loop.
            state.failures = failures
            sleep(draft, *pause_of(failures))
        else:
            _go_on(draft, is_news or is_held)
    elif event["status"] == 304:
        succeed(state)
        _go_on(draft, is_held)
    elif task.wait_s is not None and _needs_tag(event):
        # A proxy drops `If-None-Match`. Without a wait the server needs none.
        succeed(state)
        state.may_wait = False
        _poll(draft)
    else:
        refuse(draft, event)


def _needs_tag(event: PollAnswer) -> bool:
    return event["status"] == 400 and event.get("code") == "wait_needs_tag"


def _go_on(draft: PollerDraft, may_poll: bool) -> None:
    """Polls again, unless the server does not hold polls now."""
    if may_poll and _can_wait(draft.state):
        _poll(draft)
    else:
        sleep(draft, draft.state.interval_ms)


def _is_known(state: PollerState, body: UnreadSummaryOut) -> bool:
    """Where a proxy changes tags, this comes instead of a 304."""
    numbers = (body["epoch"], body.get("revision"), body.get("shared_revision"))
    known_epoch = state.known["epoch"] if state.known else None
    return (known_epoch, state.revision, state.shared_revision) == numbers


def _accept(draft: PollerDraft, body: UnreadSummaryOut, tag: str | None) -> bool:
    """Takes an answer over, unless it is older than what is known."""
    state = draft.state
    if state.known and state.known["epoch"] != body["epoch"]:
        _forget(draft)
    if _is_older(state, body):
        return False
    if "revision" in body:
        if body["revision"] > state.revision or "shared_revision" in body:
            state.shared_revision = body.get("shared_revision")
        state.revision = body["revision"]
    is_first = state.known is None
    state.known = keep_missing(state.known, body) if body["degraded"] and state.known else body
    state.tag = tag
    if is_first:
        resets.send_held(draft)
    return True


def _forget(draft: PollerDraft) -> None:
    """A restored database gives the same revisions to other states."""
    state = draft.state
    state.known = state.tag = state.shared_revision = None
    state.revision = -1
    resets.drop(draft)


def _is_older(state: PollerState, body: UnreadSummaryOut) -> bool:
    if "revision" not in body or body["revision"] > state.revision:
        return False
    if body["revision"] < state.revision:
        return True
    if "shared_revision" not in body or state.shared_revision is None:
        return False
    return body["shared_revision"] < state.shared_revision
