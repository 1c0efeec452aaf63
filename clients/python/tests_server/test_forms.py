"""Every argument of every route, each in a request of its own: the server knows its name and takes
its form. A success is what its annotation says. Other refusals do not matter here."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter, getmembers, isfunction, signature
from typing import Any

from headmark import Call, Headmark, ProblemError, routes
from tests_server.server import Server
from tests_server.test_routes import answer_type, matches

# What a client hears that has put a request together wrongly.
FORM = {400, 405, 413, 415, 422}
VALUES: dict[str, Any] = {
    "actor_id": 2,
    "after": 0,
    "all": True,
    "approve_follows": False,
    "around": 1,
    "at": 1,
    "badge": "like",
    "before": 9,
    "body": "Tonight.",
    "by": 2,
    "cap": 99,
    "channel": "system",
    "client_id": "c-1",
    "content": "Hi",
    "data": {"url": "/news"},
    "delivery": "read",
    "device": "phone",
    "device_id": "phone",
    "dot": "mall",
    "epoch": "e",
    "expires_at": "2999-01-31T09:30:00.123Z",
    "fan": 3,
    "format": "bitmap",
    "from_": 1,
    "group": 9,
    "group_key": "post:1",
    "id": 1,
    "ids": "2,3",
    "include": "counters,feed",
    "item_id": "i-1",
    "level": "all",
    "limit": 5,
    "lists": "followers",
    "members": "read",
    "mention_all": True,
    "mentions": [2],
    "not_in_total": [],
    "notification_id": 1,
    "pairs": [{"user_id": 1, "target_id": 2}],
    "peer": 2,
    "post_id": "p-1",
    "push": True,
    "receipts": True,
    "recipients": [1],
    "respond_async": True,
    "sender_id": 1,
    "seq": 1,
    "share_receipts": True,
    "special": True,
    "status": "unseen",
    "target": 4,
    "title": "News",
    "to": 5,
    "type": "like",
    "types": "unread,post",
    "unread": True,
    "until": "2999-01-31T09:30:00.123Z",
    "up_to": 0,
    "up_to_seq": 0,
    "user": 1,
    "user_ids": [1, "2"],
    "view": "page",
    "view_id": "home",
    "views": "page:home",
    "visibility": "secret",
    "wait": 1,
}
# Where a name means something else.
OF_ROUTE: dict[tuple[str, str], Any] = {
    # Nobody else uses this one.
    ("erase_user", "user"): 77,
    ("increment_badges", "items"): [{"user_id": 1, "badge": "like"}],
    ("put_posts", "items"): [{"user_id": 1, "post_id": "p-1"}],
    ("put_view_items", "items"): [{"view": "page", "view_id": "home", "item_id": "i-1"}],
    ("query_badges", "include"): ["counters", "feed"],
    ("read_chats", "up_to"): {"groups": {"9": 1}, "directs": {"2": 1}},
    ("read_notifications", "ids"): [1],
    ("reset_badges", "up_to"): {"like": 1},
    ("retract_badges", "items"): [{"user_id": 1, "badge": "like"}],
    ("send_direct", "sender_id"): 2,
}
# What an option does not go without; "": what the route itself does not go without.
WITH: dict[tuple[str, str], list[str]] = {
    ("edit_notification", ""): ["title"],
    ("get_receipts", "cursor"): ["members"],
    ("get_receipts", "limit"): ["members"],
    ("patch_settings", ""): ["share_receipts"],
    ("read_notifications", ""): ["all"],
    ("read_notifications", "up_to_seq"): ["all"],
    ("send_direct", ""): ["sender_id"],
    ("send_group_message", ""): ["sender_id"],
    ("send_group_message", "mention_all"): ["sender_id"],
    ("send_group_message", "mentions"): ["sender_id"],
}
FIRST = ("put_group", "join_members", "send_group_message")


def set_up(headmark: Headmark) -> None:
    """Values that the server gives."""
    accepted: Any = headmark.send(routes.follow_user(1, 6, respond_async=True))
    OF_ROUTE["get_operation", "id"] = accepted["operation_id"]
    OF_ROUTE["reset_feed", "up_to"] = headmark.send(routes.get_feed(1))["token"]


def value_of(operation: str, name: str) -> Any:
    if name == "idempotency_key":
        return f"key-of-{operation}"
    return "of-no-page" if name == "cursor" else OF_ROUTE.get((operation, name), VALUES.get(name))


def calls() -> Iterator[tuple[str, Call[Any]]]:
    """Of each route: with what it needs, and with each option besides."""
    found = dict(getmembers(routes, isfunction))
    # What removes comes last, so that the others find something.
    last = [name for name in found if name.startswith(("delete", "erase", "leave", "recall"))]
    for operation in dict.fromkeys([*FIRST, *sorted(found.keys() - last), *last]):
        parameters = signature(found[operation]).parameters
        needed = [name for name, of in parameters.items() if of.default is Parameter.empty]
        for option in ["", *(name for name in parameters if name not in needed)]:
            names = {*needed, *WITH.get((operation, option), []), *([option] if option else [])}
            arguments = {name: value_of(operation, name) for name in names}
            assert None not in arguments.values(), f"{operation}: {arguments}"
            yield option, found[operation](**arguments)


def complaint(headmark: Headmark, option: str, call: Call[Any]) -> str | None:
    """What is wrong with the form of a request, or of its answer."""
    try:
        data = headmark.fetch(call, tag='"of-no-answer"', retries=0).data
        if not matches(data, answer_type(call.operation)):
            return f"{option}: {call.name}: {data}"
    except ProblemError as error:
        # It has looked at the cursor.
        is_expected = option == "cursor" and error.code == "invalid_cursor"
        is_of_form = error.status in FORM or error.code == "unknown_route" or error.status >= 500
        return f"{option}: {error}" if is_of_form and not is_expected else None
    return None


def test_every_argument_of_every_route(server: Server) -> None:
    with server.client() as headmark:
        set_up(headmark)
        complaints = [complaint(headmark, option, call) for option, call in calls()]
    assert len(complaints) > 200
    assert [found for found in complaints if found] == []


def test_the_check_can_fail(server: Server) -> None:
    with server.client() as headmark:
        for call in (
            Call[Any]("list_chats", "GET", "/v1/users/1/chats", query={"unread": "True"}),
            Call[Any]("list_chats", "GET", "/v1/users/1/chats", query={"cursor": "x"}),
            Call[Any]("list_chats", "GET", "/v1/users/1/chats", query={"read": "true"}),
            Call[Any]("list_chats", "GET", "/v1/users/1/talks"),
            routes.list_chats("x"),
        ):
            assert complaint(headmark, "", call), call
