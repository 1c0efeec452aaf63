"""What a request is, before anybody sends it, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

T = TypeVar("T")

# POSTs that change nothing when they are repeated, besides those with a key that the route takes, a
# `client_id` or an `up_to`: they read, join, or mark one thing.
REPEATABLE = frozenset(
    {
        "query_badges",
        "query_relations",
        "join_members",
        "read_group_message",
        "read_notification",
        "unread_notification",
    }
)

# A PUT and DELETEs that are not repeated so: what they delete may come into being again in between,
# or the server refuses what is done already.
ONCE = frozenset(
    {"accept_follow_request", "delete_badge", "delete_channel", "delete_device", "delete_dot"}
)


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request to a route that answers `T`. Both clients send it. None means: leave it out."""

    operation: str
    method: str
    route: str
    path: Mapping[str, str | int] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    idempotency_key: str | None = None
    takes_key: bool = False
    respond_async: bool = False
    # A success may be a 204. Every other one is a JSON object.
    may_be_empty: bool = False

    @property
    def url_path(self) -> str:
        for name, value in self.path.items():
            # They would name another route.
            if str(value) in ("", ".", ".."):
                raise ValueError(f"{self.operation}: {name} must not be {str(value)!r}")
        parts = {name: quote(str(value), safe="") for name, value in self.path.items()}
        return self.route.format(**parts)

    @property
    def name(self) -> str:
        return f"{self.method} {self.url_path}"

    @property
    def params(self) -> dict[str, str]:
        return {name: text_of(value) for name, value in self.query.items() if value is not None}

    @property
    def json(self) -> dict[str, Any] | None:
        if self.body is None:
            return None
        return {name: value for name, value in self.body.items() if value is not None}

    @property
    def is_repeatable(self) -> bool:
        """Whether a second request changes nothing that the first did not."""
        if self.method != "POST":
            return self.operation not in ONCE
        # A route that takes no key ignores it.
        if self.takes_key and self.idempotency_key is not None:
            return True
        sent = self.json or {}
        names = ("client_id", "up_to", "up_to_seq")
        return self.operation in REPEATABLE or any(name in sent for name in names)


def text_of(value: object) -> str:
    """A value in a query."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A success with what its headers say."""

    status: int
    data: T
    # Send it back as `tag` to be told whether the answer changed.
    etag: str | None = None
    poll_interval_s: float | None = None
    retry_after_s: float | None = None
    # Names the request in the server's log.
    request_id: str | None = None
    # With a key: this is the answer of an earlier request.
    was_replayed: bool = False

    @property
    def is_modified(self) -> bool:
        return self.status != 304
