"""The events reader as a generator: it yields what to do, and is sent what came of it. So the sync
and the async reader follow the same rules."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

from .. import routes
from ..call import Answer, Call
from ..errors import HeadmarkError, NoAnswerError, ProblemError
from ..pace import is_early, is_retryable, jitter_of, pause_of
from ..types import EventOut, EventsOut

# Nobody has this id, so the query says nothing but the epoch. It makes no user. `headmark doctor`
# takes the highest id, so this is another one.
NOBODY = 9_160_223_718_442_530_911
# The pace where the server does not hold requests, unless it names another.
INTERVAL_MS = 1_000


class EventsPosition(TypedDict):
    """Up to where the events were handled, and in which history of the database."""

    epoch: str
    after: int


@dataclass(frozen=True)
class Ask:
    """Send the call, and resume with its answer or error."""

    call: Call[Any]


@dataclass(frozen=True)
class Pause:
    ms: int
    jitter_ms: int


@dataclass(frozen=True)
class Handle:
    """Hand these to the app, and resume when it is done with them."""

    events: list[EventOut]


@dataclass(frozen=True)
class Save:
    position: EventsPosition


@dataclass(frozen=True)
class EventsGap:
    """The reader goes on with the oldest event that is kept.

    `expired`: events after `position` were removed before they were read. `restored`: the database
    was restored, and numbers may be given again. Forget the ids that you keep to drop repeats, and
    expect events again.
    """

    reason: Literal["expired", "restored"]
    position: EventsPosition


Step = Ask | Pause | Handle | Save | EventsGap
Outcome = Answer[Any] | HeadmarkError | None


def read_events(
    position: EventsPosition | None,
    *,
    limit: int,
    wait_s: int,
    types: Sequence[str] | None,
    now_ms: Callable[[], float],
) -> Generator[Step, Outcome, None]:
    failures = 0
    names = ",".join(types) if types is not None else None
    while True:
        started_at = now_ms()
        after = position["after"] if position else None
        call = routes.list_events(after=after, limit=limit, types=names, wait=wait_s)
        page = yield Ask(call)
        if isinstance(page, ProblemError) and page.code == "gone" and position:
            # A restore, too, may have removed the position: only the epoch says which it was.
            epoch = yield from ask_epoch()
            is_same = isinstance(epoch, str) and epoch == position["epoch"]
            if isinstance(epoch, str):
                yield EventsGap("expired" if is_same else "restored", position)
                position = None
                continue
            page = epoch
        if isinstance(page, Answer) and not is_usable(page.data, after or 0):
            page = NoAnswerError(call.name, "malformed", "no page, or one that stands still")
        if not isinstance(page, Answer):
            failures += 1
            yield pause_after(page, failures)
            continue
        body: EventsOut = page.data
        # With types, it also moves where there are no items.
        if position is None or body["next_after"] > position["after"]:
            # After the page: a restore before it shows in the epoch. Numbers alone would not say
            # so, once the restored server has given as many of them again.
            epoch = yield from ask_epoch()
            if not isinstance(epoch, str):
                failures += 1
                yield pause_after(epoch, failures)
                continue
            if position and position["epoch"] != epoch:
                yield EventsGap("restored", position)
                position = None
                continue
            position = {"epoch": epoch, "after": body["next_after"]}
            if body["items"]:
                yield Handle(body["items"])
            yield Save(position)
        failures = 0
        if body["items"] or body["has_more"]:
            continue
        if is_early(now_ms() - started_at, wait_s or 1):
            interval_s = page.poll_interval_s
            ms = INTERVAL_MS if interval_s is None else int(interval_s * 1_000)
            yield Pause(ms, jitter_of(ms))


def ask_epoch() -> Generator[Step, Outcome, str | Outcome]:
    call = routes.query_badges(user_ids=[NOBODY], include=["counters"])
    answer = yield Ask(call)
    if not isinstance(answer, Answer):
        return answer
    try:
        epoch = answer.data["items"][0]["epoch"]
    except (LookupError, TypeError):
        epoch = None
    return epoch if isinstance(epoch, str) else NoAnswerError(call.name, "malformed", "no epoch")


def is_usable(body: Any, after: int) -> bool:
    """One that does not move the position would come again and again, without a pause."""
    items, next_after, has_more = (body.get(name) for name in ("items", "next_after", "has_more"))
    if not (isinstance(items, list) and isinstance(next_after, int) and isinstance(has_more, bool)):
        return False
    return next_after > after or not (items or has_more)


def pause_after(error: Outcome, failures: int) -> Pause:
    """Raises what the caller has to act on."""
    asked_s = None
    if isinstance(error, ProblemError):
        # Without a code, it is of a proxy or a firewall. `gone` without a position: events were
        # removed while they were read.
        is_foreign = error.code is None and error.status != 401
        if not (is_foreign or is_retryable(error.status) or error.code == "gone"):
            raise error
        asked_s = error.retry_after_s
    elif not isinstance(error, NoAnswerError):
        raise TypeError(f"not the outcome of a call: {error!r}")
    return Pause(*pause_of(failures, asked_s))
