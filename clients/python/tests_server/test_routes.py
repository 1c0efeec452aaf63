"""A backend's routes, each sent once: the real server takes them and answers what the types say."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from typing_extensions import NotRequired, is_typeddict

from headmark import Call, Headmark, ProblemError, routes, types
from tests_server.server import Server

GROUP = 9
CALLS: list[Call[Any]] = [
    routes.increment_badge(1, "mention", by=3, idempotency_key="comment-9001"),
    routes.retract_badge(1, "mention", at=2),
    routes.increment_badges(items=[{"user_id": 1, "badge": "like", "by": 2}]),
    routes.get_unread_summary(1, cap=99, views="home:1"),
    routes.explain_badges(1),
    routes.query_badges(user_ids=[1, "2"], include=["counters", "feed"], cap=9),
    routes.reset_badge(1, "mention", up_to=1),
    routes.reset_badges(1, up_to={"like": 1}),
    routes.send_broadcast("system", title="News", data={"url": "/news"}),
    routes.list_broadcasts("system", limit=5),
    routes.list_user_broadcasts(1, "system"),
    routes.read_broadcasts(1, "system", up_to=1),
    routes.withdraw_broadcast("system", 1),
    routes.light_dot("mall"),
    routes.clear_dot(1, "mall", up_to=1),
    routes.follow_user(1, 2, visibility="secret", special=True),
    routes.follow_user(1, 3, respond_async=True),
    routes.get_relations(1, ids="2,3"),
    routes.query_relations(pairs=[{"user_id": 1, "target_id": 2}]),
    routes.list_following(1, visibility="all"),
    routes.get_following_ids(1),
    routes.list_followers(2),
    routes.get_relation_counts(1),
    routes.block_user(1, 8),
    routes.list_blocks(1),
    routes.unblock_user(1, 8),
    routes.put_post(2, "p-1"),
    routes.count_posts(2),
    routes.get_feed(1),
    routes.reset_feed(1),
    routes.delete_post(2, "p-1"),
    routes.put_view_item("page", "home", "i-1", actor_id=2),
    routes.access_view(1, "page", "home"),
    routes.get_view(1, "page", "home"),
    routes.delete_view_item("page", "home", "i-1"),
    routes.send_notification(type="notice", title="Hi", content="You", recipients=[1, 2]),
    routes.send_notification(type="like", recipients=[1], group_key="post:1", actor_id=2),
    routes.list_notifications(1, status="unseen"),
    routes.see_notifications(1),
    routes.read_notifications(1, all=True),
    routes.put_group(GROUP, delivery="read", receipts=True),
    routes.get_group(GROUP),
    routes.join_group(GROUP, 1),
    routes.join_members(GROUP, user_ids=[2, 3]),
    routes.list_members(GROUP),
    routes.send_group_message(GROUP, sender_id=1, client_id="m-1", content="Lunch?"),
    routes.list_group_messages(GROUP, after=0),
    routes.get_receipts(GROUP, 1),
    routes.list_user_groups(2),
    routes.read_group(2, GROUP, up_to=1),
    routes.recall_group_message(GROUP, 1),
    routes.leave_group(GROUP, 3),
    routes.send_direct(1, sender_id=2, client_id="d-1", content="Are you there?"),
    routes.get_inbox(1, after=0),
    routes.list_directs(1),
    routes.list_chats(1, unread=True),
    routes.read_direct(1, 2, up_to=1),
    routes.put_cursor(1, "phone", seq=1),
    routes.list_devices(1),
    routes.delete_device(1, "phone"),
    routes.list_events(after=0),
]


def matches(value: Any, hint: Any) -> bool:
    """Whether a value is what its annotation says, without a field that it does not name."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is NotRequired:
        return matches(value, parts[0])
    if origin in (Union, UnionType):
        return any(matches(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is list:
        return isinstance(value, list) and all(matches(entry, parts[0]) for entry in value)
    if origin is dict:
        return isinstance(value, dict) and all(matches(e, parts[1]) for e in value.values())
    if is_typeddict(hint):
        return isinstance(value, dict) and matches_fields(value, hint)
    return type(value) is hint or (hint is NoneType and value is None)


def matches_fields(value: dict[str, Any], hint: Any) -> bool:
    fields = get_type_hints(hint, vars(types), include_extras=True)
    is_required = {name: get_origin(field) is not NotRequired for name, field in fields.items()}
    has_all = all(name in value for name, required in is_required.items() if required)
    return (
        has_all
        and value.keys() <= fields.keys()
        and all(matches(value[name], field) for name, field in fields.items() if name in value)
    )


def answer_type(operation: str) -> Any:
    scope = {**vars(routes), "Call": Call}
    return get_args(get_type_hints(getattr(routes, operation), scope)["return"])[0]


def test_the_check_can_fail() -> None:
    badge = {"badge": "mention", "unread": 1, "head": 1, "revision": 1}
    assert matches(badge, types.BadgeOut)
    for wrong in ({**badge, "head": "1"}, {**badge, "more": 1}, {"badge": "mention"}, [badge]):
        assert not matches(wrong, types.BadgeOut)


def test_every_call(server: Server) -> None:
    with server.client() as headmark:
        for call in CALLS:
            data: Any = headmark.send(call)
            assert matches(data, answer_type(call.operation)), f"{call.name}: {data}"


def test_a_notification_is_read_and_withdrawn(server: Server) -> None:
    with server.client() as headmark:
        call = routes.send_notification(type="n", title="Hi", content="You", recipients=[5])
        id = headmark.send(call)["notification_id"]
        assert headmark.send(routes.read_notification(5, id))["unread"] == 0
        assert headmark.send(routes.unread_notification(5, id))["unread"] == 1
        edited = headmark.send(routes.edit_notification(id, content="All"))
        assert (edited.get("title"), edited.get("content"), edited["read_count"]) == (
            "Hi",
            "All",
            0,
        )
        assert headmark.send(routes.see_notifications(5))["unseen"] == 0
        headmark.send(routes.withdraw_notification(id))
        with pytest.raises(ProblemError, match="410 · gone"):
            headmark.send(routes.get_notification(id))


def test_tags(server: Server) -> None:
    with server.client() as headmark:
        first = headmark.fetch(routes.get_unread_summary(6))
        again = headmark.fetch(routes.get_unread_summary(6, wait=1), tag=first.etag)
        assert (again.status, again.data, again.is_modified) == (304, None, False)
        headmark.send(routes.increment_badge(6, "mention"))
        news = headmark.fetch(routes.get_unread_summary(6, wait=1), tag=first.etag)
        assert news.is_modified
        assert news.data
        assert news.data["total"] == 1


def test_problems(server: Server) -> None:
    with server.client() as headmark:
        items: list[types.IncrementBadgesItemIn] = [
            {"user_id": 1, "badge": "ok"},
            {"user_id": 1, "badge": "ok", "by": 0},
        ]
        with pytest.raises(ProblemError) as raised:
            headmark.send(routes.increment_badges(items=items))
        error = raised.value
        assert (error.status, error.code) == (422, "invalid_body")
        assert [where["pointer"] for where in error.where] == ["/items/1/by"]
        assert error.request_id
        call = routes.increment_badge(7, "b", idempotency_key="k")
        assert not headmark.fetch(call).was_replayed
        assert headmark.fetch(call).was_replayed
        with pytest.raises(ProblemError, match="idempotency_key_reused"):
            headmark.send(routes.increment_badge(7, "b", by=2, idempotency_key="k"))
    with (
        Headmark(server.base_url, token="wrong") as stranger,
        pytest.raises(ProblemError, match="unauthorized"),
    ):
        stranger.send(routes.get_unread_summary(1))
