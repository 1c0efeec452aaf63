"""The two ways in which a request fails: the server refused it, or no usable answer came."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Literal, cast

from .types import FieldError, ProblemOut

NoAnswerReason = Literal["not_sent", "network", "timeout", "malformed"]


class HeadmarkError(Exception):
    """A request failed."""


class ProblemError(HeadmarkError):
    """The server answered with an error. Look at `code`: it is stable."""

    def __init__(
        self, request: str, status: int, problem: ProblemOut | None, headers: Mapping[str, str]
    ) -> None:
        # All of it in `args`, so that the exception survives pickling, as task queues do it.
        super().__init__(request, status, problem, dict(headers))
        # What was asked for, such as `POST /v1/badges/query`.
        self.request = request
        self.status = status
        # None: it was not Headmark that answered.
        self.code: str | None = problem["code"] if problem else None
        self.detail: str | None = problem.get("detail") if problem else None
        # The invalid values: a pointer into the body (`/items/3/by`) or a parameter, and why.
        self.where: list[FieldError] = problem.get("errors", []) if problem else []
        self.problem = problem
        # How long to wait before the same request may succeed.
        self.retry_after_s = retry_after_of(headers)
        # Names the request in the server's log.
        self.request_id = headers.get("x-request-id")

    def __str__(self) -> str:
        places = "; ".join(f"{error['pointer']}: {error['detail']}" for error in self.where)
        parts = [f"{self.request}: {self.status}", self.code, self.detail, places]
        return " · ".join(part for part in parts if part)


class NoAnswerError(HeadmarkError):
    """No usable answer came. If `was_sent`, nobody knows whether a write took effect."""

    def __init__(self, request: str, reason: NoAnswerReason, detail: str = "") -> None:
        super().__init__(request, reason, detail)
        self.request = request
        self.reason: NoAnswerReason = reason
        self.detail = detail

    @property
    def was_sent(self) -> bool:
        return self.reason != "not_sent"

    def __str__(self) -> str:
        return f"{self.request}: no answer: {self.reason}" + (
            f": {self.detail}" * bool(self.detail)
        )


def problem_of(body: bytes) -> ProblemOut | None:
    """None: it is of a proxy or a firewall, which may have codes of its own. The status says
    enough."""
    problem = json_of(body)
    if not isinstance(problem, dict):
        return None
    if not all(isinstance(problem.get(name), str) for name in ("code", "title", "detail")):
        return None
    places = problem.pop("errors", None)
    found = [place for place in places if is_place(place)] if isinstance(places, list) else []
    return cast(ProblemOut, {**problem, "errors": found} if found else problem)


def is_place(place: object) -> bool:
    return isinstance(place, dict) and all(
        isinstance(place.get(name), str) for name in ("pointer", "detail")
    )


def json_of(body: bytes) -> object:
    """None: it is no JSON."""
    try:
        return cast(object, json.loads(body))
    except (ValueError, RecursionError):
        return None


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """`Retry-After` in seconds; the header may also be a date."""
    value = headers.get("retry-after", "")
    if re.fullmatch(r"[0-9]{1,9}", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
