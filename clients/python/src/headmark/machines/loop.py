"""What the two machines share: when the loop runs, how it sleeps, and what it does after an answer
that brought nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from typing_extensions import NotRequired, TypedDict

from ..pace import DEFAULT_INTERVAL_MS, is_retryable, jitter_of, pause_of, retry_after_ms

Signal = Literal["hidden", "visible", "offline", "online"]
Command = Literal["start", "stop", "refresh", "hidden", "visible", "offline", "online"]


class Trouble(TypedDict):
    """Why a request brought nothing."""

    # The HTTP status; 0 when no usable answer came.
    status: int
    code: str


NO_ANSWER: Trouble = {"status": 0, "code": "no_answer"}
# It was not Headmark that answered.
UNEXPECTED = "unexpected_answer"


class AnswerFields(TypedDict):
    """The parts of an HTTP answer that the machines look at."""

    id: int
    status: int
    code: NotRequired[str]
    retry_after_s: NotRequired[float]
    poll_interval_s: NotRequired[float]


class CommandEvent(TypedDict):
    type: Command


class Failed(TypedDict):
    """No answer: no connection, cut off, not in time, not JSON."""

    type: Literal["failed"]
    id: int


class Woke(TypedDict):
    type: Literal["woke"]
    id: int


class Sleep(TypedDict):
    """Send `woke` after `ms` and a random part of `jitter_ms`."""

    type: Literal["sleep"]
    id: int
    ms: int
    jitter_ms: int


class Cancel(TypedDict):
    """Abort the request or the sleep."""

    type: Literal["cancel"]
    id: int


@dataclass(frozen=True)
class Task:
    """What the loop waits for. A delivery is the app's own transaction: it is never cancelled."""

    type: Literal["request", "sleep", "delivery"]
    id: int
    started_at: int = 0
    wait_s: int | None = None


@dataclass
class LoopState:
    next_id: int = 1
    running: bool = False
    hidden: bool = False
    offline: bool = False
    # The app has to act (a new token) before requests make sense.
    failed: bool = False
    trouble: Trouble | None = None
    task: Task | None = None
    # No request is sent before this time.
    not_before: int = 0
    interval_ms: int = DEFAULT_INTERVAL_MS
    # Requests in a row that brought nothing.
    failures: int = 0
    # Of these, the requests that waited: only the answer to such a one ends their row.
    failed_waits: int = 0
    # The next request does not wait: what is known may be old, and the user is to hear so soon.
    asks_at_once: bool = True


State = TypeVar("State", bound=LoopState)


@dataclass
class Draft(Generic[State]):
    """A step in the making: a copy of the state to change, and the effects so far."""

    state: State
    effects: list[Any]
    now: int


AnyDraft = Draft[Any]


def next_id(draft: AnyDraft) -> int:
    found: int = draft.state.next_id
    draft.state.next_id = found + 1
    return found


def command(draft: AnyDraft, type: Command) -> bool:
    """Obeys a command. True: the loop has to go on now."""
    state: LoopState = draft.state
    if type == "start":
        if state.running and not state.failed:
            return False
        state.running = True
        return resume(state)
    if type == "refresh":
        if not state.running:
            return False
        cancel_task(draft)
        return resume(state)
    if type == "stop":
        state.running = False
    elif type == "hidden":
        state.hidden = True
    elif type == "offline":
        state.offline = True
    else:
        return come_back(state, "hidden" if type == "visible" else "offline")
    cancel_task(draft)
    return False


def resume(state: LoopState) -> Literal[True]:
    """As at first. The trouble is shown until an answer comes."""
    state.asks_at_once = True
    state.failed = False
    state.failures = 0
    state.failed_waits = 0
    return True


def come_back(state: LoopState, reason: Literal["hidden", "offline"]) -> bool:
    was_away: bool = getattr(state, reason)
    setattr(state, reason, False)
    return was_away and may_request(state) and resume(state)


def may_request(state: LoopState) -> bool:
    return state.running and not (state.failed or state.hidden or state.offline)


def cancel_task(draft: AnyDraft) -> None:
    task: Task | None = draft.state.task
    if task is None or task.type == "delivery":
        return
    draft.effects.append(Cancel(type="cancel", id=task.id))
    draft.state.task = None


def sleep(draft: AnyDraft, ms: int, jitter_ms: int | None = None) -> None:
    draft.state.task = Task("sleep", start_sleep(draft, ms, jitter_ms))


def start_sleep(draft: AnyDraft, ms: int, jitter_ms: int | None = None) -> int:
    """A sleep of the loop or of something next to it."""
    id = next_id(draft)
    if jitter_ms is None:
        jitter_ms = jitter_of(ms)
    draft.effects.append(Sleep(type="sleep", id=id, ms=ms, jitter_ms=jitter_ms))
    return id


def take_pace(state: LoopState, answer: AnswerFields) -> None:
    """Any answer may change the pace."""
    interval_s = answer.get("poll_interval_s", 0)
    if interval_s > 0:
        state.interval_ms = int(interval_s * 1_000)


def did_wait(state: LoopState) -> bool:
    """A proxy that cuts requests that wait, and no others, must not make a hot loop."""
    task = state.task
    return task is not None and task.type == "request" and task.wait_s is not None


def succeed(state: LoopState) -> None:
    """An answer came, and it is one of Headmark."""
    if did_wait(state):
        state.failed_waits = 0
    state.task = None
    state.failures = state.failed_waits
    state.trouble = None
    state.asks_at_once = False


def trouble_of(answer: AnswerFields) -> Trouble:
    return {"status": answer["status"], "code": answer.get("code", UNEXPECTED)}


def can_repeat(answer: AnswerFields) -> bool:
    """An answer without a code that brings nothing is of a captive portal, a proxy or a firewall.
    A 401 needs the app all the same."""
    is_foreign = "code" not in answer and answer["status"] != 401
    return is_foreign or is_retryable(answer["status"])


def refuse(draft: AnyDraft, answer: AnswerFields) -> None:
    """An answer without news that says why."""
    if can_repeat(answer):
        retry(draft, trouble_of(answer), answer.get("retry_after_s"))
        return
    draft.state.task = None
    draft.state.failed = True
    draft.state.trouble = trouble_of(answer)


def retry(draft: AnyDraft, trouble: Trouble, retry_after_s: float | None = None) -> None:
    state: LoopState = draft.state
    state.failures += 1
    if did_wait(state):
        state.failed_waits += 1
    state.trouble = trouble
    state.asks_at_once = True
    state.task = None
    # What the server asks for also holds for a user who comes back.
    state.not_before = max(state.not_before, draft.now + retry_after_ms(retry_after_s))
    if state.running:
        sleep(draft, *pause_of(state.failures, retry_after_s))


CommonStatus = Literal["failed", "idle", "paused", "retrying"]


def common_status(state: LoopState) -> CommonStatus | None:
    """The first that holds; None: the machine's own."""
    if not state.running:
        return "idle"
    if state.failed:
        return "failed"
    if state.hidden or state.offline:
        return "paused"
    return "retrying" if state.trouble else None
