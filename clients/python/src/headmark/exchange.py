"""One request from start to end, without I/O: what to send, when to send it again, when to give up.

`exchange` is a generator. It yields what to do, and is sent what came of it. So the sync and the
async client retry by the same code.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from .call import Answer, Call
from .clock import Clock
from .errors import NoAnswerError, ProblemError, json_of, problem_of, retry_after_of
from .pace import is_retryable, pause_of
from .tokens import Used
from .visible import is_visible, visible

T = TypeVar("T")

# With these codes nothing changed, so that any request may be sent again.
UNCHANGED = frozenset({"rate_limited", "overloaded", "store_unavailable", "shutting_down"})
# The first request with this key still runs. Its answer will be the answer of this one.
RUNNING = "idempotency_in_progress"


@dataclass(frozen=True)
class Limits:
    # How long one attempt may take, its body included, beyond the `wait` of the call.
    timeout_s: float = 10.0
    # How often a request is sent again.
    retries: int = 2
    # No attempt begins later than this after the first one.
    total_s: float = 30.0
    # How many connections a client may have open. A poll that the server holds keeps one, so a
    # bound must leave room for other requests: a request that finds none free for 5 s has failed.
    # None: as many as there are requests at once.
    max_connections: int | None = None


@dataclass(frozen=True)
class Attempt:
    """Send the request, and resume with `Reply` or `NoAnswerError`."""

    headers: Mapping[str, str]
    timeout_s: float
    # Send it with another token than this one.
    rejected: Used | None


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Reply:
    status: int
    # Names in lower case.
    headers: Mapping[str, str]
    body: bytes
    used: Used | None


Steps = Generator["Attempt | Pause", "Reply | NoAnswerError | None", Answer[T]]


def exchange(
    call: Call[T], limits: Limits, clock: Clock, *, tag: str | None = None, can_renew: bool = False
) -> Steps[T]:
    if call.takes_key and call.idempotency_key is None and limits.retries > 0:
        # Makes our own retries safe. A key of the caller's also survives a crash of the caller.
        call = replace(call, idempotency_key=uuid.uuid4().hex)
    headers = headers_of(call, tag)
    deadline = clock.now() + limits.total_s
    failures, rejections = 0, 0
    rejected: Used | None = None
    is_renewed = False
    while True:
        wait_s = float(call.query.get("wait") or 0)
        outcome = yield Attempt(headers, wait_s + limits.timeout_s, rejected)
        assert outcome is not None, "the driver sends the outcome of an attempt"
        result = read(call, outcome, tag)
        if isinstance(result, Answer):
            return result
        rejected = None
        if can_renew and isinstance(outcome, Reply) and outcome.used:
            is_renewed = is_renewed or outcome.used.is_renewed
            # The first one may be older than a renewal for another request.
            if outcome.status == 401 and not is_renewed and rejections < 2:
                rejections += 1
                rejected = outcome.used
                continue
        failures += 1
        if failures > limits.retries or not may_retry(call, result):
            raise result
        pause_s = pause_after(result, failures, clock)
        if clock.now() + pause_s >= deadline:
            raise result
        yield Pause(pause_s)


def may_retry(call: Call[Any], error: ProblemError | NoAnswerError) -> bool:
    if isinstance(error, NoAnswerError):
        return call.is_repeatable or not error.was_sent
    if error.code in UNCHANGED or error.code == RUNNING:
        return True
    return is_retryable(error.status) and call.is_repeatable


def pause_after(error: ProblemError | NoAnswerError, failures: int, clock: Clock) -> float:
    retry_after_s = error.retry_after_s if isinstance(error, ProblemError) else None
    ms, jitter_ms = pause_of(failures, retry_after_s)
    return (ms + clock.random() * jitter_ms) / 1_000


def headers_of(call: Call[Any], tag: str | None) -> dict[str, str]:
    headers = {
        "accept": "application/json",
        "cache-control": "no-store",
        # The same for every attempt.
        "x-request-id": uuid.uuid4().hex,
    }
    if call.idempotency_key is not None:
        headers["idempotency-key"] = visible("the idempotency key", call.idempotency_key)
    if call.respond_async:
        headers["prefer"] = "respond-async"
    if tag is not None:
        headers["if-none-match"] = visible("the tag", tag)
    return headers


def read(
    call: Call[T], outcome: Reply | NoAnswerError, tag: str | None
) -> Answer[T] | ProblemError | NoAnswerError:
    if isinstance(outcome, NoAnswerError):
        return outcome
    status, headers, body = outcome.status, outcome.headers, outcome.body
    if not (200 <= status < 300 or status == 304):
        return ProblemError(call.name, status, problem_of(body), headers)
    data: object = None
    is_empty = tag is not None if status == 304 else status == 204 and call.may_be_empty
    if not is_empty:
        data = json_of(body)
        if not isinstance(data, dict):
            # A captive portal, a broken proxy: every answer of Headmark is an object.
            return NoAnswerError(call.name, "malformed", f"status {status} without a JSON object")
    etag = headers.get("etag", "")
    return Answer(
        status=status,
        data=cast(T, data),
        # A tag that cannot be sent back is of no use.
        etag=etag if is_visible(etag) else None,
        poll_interval_s=positive(headers.get("x-poll-interval")),
        retry_after_s=retry_after_of(headers),
        request_id=headers.get("x-request-id"),
        was_replayed=headers.get("idempotent-replayed") == "true",
    )


def positive(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None
