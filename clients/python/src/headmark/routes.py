"""A function for each route under `/v1` but the export of a user. Written by `scripts/generate.py`: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from . import types
from .call import Call
from .types import Id


def increment_badges(
    *, items: Sequence[types.IncrementBadgesItemIn], idempotency_key: str | None = None
) -> Call[types.UserBadgesOut]:
    """Increment many badges."""
    return Call(
        "increment_badges",
        "POST",
        "/v1/badges/increment",
        idempotency_key=idempotency_key,
        takes_key=True,
        body={"items": items},
    )


def query_badges(
    *,
    user_ids: Sequence[Id],
    cap: int | None = None,
    include: Sequence[types.KindName] | None = None,
) -> Call[types.QueryBadgesOut]:
    """Get the unread summaries of many users."""
    return Call(
        "query_badges",
        "POST",
        "/v1/badges/query",
        body={"cap": cap, "include": include, "user_ids": user_ids},
    )


def retract_badges(
    *, items: Sequence[types.RetractBadgesItemIn], idempotency_key: str | None = None
) -> Call[types.UserBadgesOut]:
    """Retract increments of many badges."""
    return Call(
        "retract_badges",
        "POST",
        "/v1/badges/retract",
        idempotency_key=idempotency_key,
        takes_key=True,
        body={"items": items},
    )


def list_channels(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_BroadcastChannelOut]:
    """List the channels."""
    return Call("list_channels", "GET", "/v1/broadcasts", query={"limit": limit, "cursor": cursor})


def list_broadcasts(
    channel: types.Name, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_NoticeOut]:
    """List the broadcasts of a channel."""
    return Call(
        "list_broadcasts",
        "GET",
        "/v1/broadcasts/{channel}",
        path={"channel": channel},
        query={"limit": limit, "cursor": cursor},
    )


def send_broadcast(
    channel: types.Name,
    *,
    title: str,
    body: str | None = None,
    data: Mapping[str, Any] | None = None,
    expires_at: types.UnixMs | None = None,
    idempotency_key: str | None = None,
) -> Call[types.NoticeOut]:
    """Send a broadcast."""
    return Call(
        "send_broadcast",
        "POST",
        "/v1/broadcasts/{channel}",
        path={"channel": channel},
        idempotency_key=idempotency_key,
        takes_key=True,
        body={"body": body, "data": data, "expires_at": expires_at, "title": title},
    )


def delete_channel(channel: types.Name) -> Call[None]:
    """Delete a channel."""
    return Call(
        "delete_channel",
        "DELETE",
        "/v1/broadcasts/{channel}",
        path={"channel": channel},
        may_be_empty=True,
    )


def withdraw_broadcast(channel: types.Name, seq: types.Seq) -> Call[None]:
    """Withdraw a broadcast."""
    return Call(
        "withdraw_broadcast",
        "DELETE",
        "/v1/broadcasts/{channel}/{seq}",
        path={"channel": channel, "seq": seq},
        may_be_empty=True,
    )


def list_dots(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_LitDotOut]:
    """List the dots."""
    return Call("list_dots", "GET", "/v1/dots", query={"limit": limit, "cursor": cursor})


def delete_dot(dot: types.Name) -> Call[None]:
    """Delete a dot."""
    return Call("delete_dot", "DELETE", "/v1/dots/{dot}", path={"dot": dot}, may_be_empty=True)


def light_dot(dot: types.Name, *, idempotency_key: str | None = None) -> Call[types.LitDotOut]:
    """Light a dot for all users."""
    return Call(
        "light_dot",
        "POST",
        "/v1/dots/{dot}/light",
        path={"dot": dot},
        idempotency_key=idempotency_key,
        takes_key=True,
        body={},
    )


def list_events(
    *,
    after: int | None = None,
    limit: int | None = None,
    types: str | None = None,
    wait: int | None = None,
) -> Call[types.EventsOut]:
    """List events."""
    return Call(
        "list_events",
        "GET",
        "/v1/events",
        query={"after": after, "limit": limit, "types": types, "wait": wait},
    )


def get_group(group: Id) -> Call[types.GroupOut]:
    """Get a group."""
    return Call("get_group", "GET", "/v1/groups/{group}", path={"group": group})


def put_group(
    group: Id, *, delivery: types.Delivery | None = None, receipts: bool | None = None
) -> Call[types.GroupOut]:
    """Create or update a group."""
    return Call(
        "put_group",
        "PUT",
        "/v1/groups/{group}",
        path={"group": group},
        body={"delivery": delivery, "receipts": receipts},
    )


def delete_group(group: Id) -> Call[types.AcceptedOut]:
    """Delete a group."""
    return Call("delete_group", "DELETE", "/v1/groups/{group}", path={"group": group})


def list_members(
    group: Id, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_MemberOut]:
    """List the members of a group."""
    return Call(
        "list_members",
        "GET",
        "/v1/groups/{group}/members",
        path={"group": group},
        query={"limit": limit, "cursor": cursor},
    )


def join_members(group: Id, *, user_ids: Sequence[Id]) -> Call[types.MembersOut]:
    """Add many members to a group."""
    return Call(
        "join_members",
        "POST",
        "/v1/groups/{group}/members",
        path={"group": group},
        body={"user_ids": user_ids},
    )


def join_group(group: Id, user: Id) -> Call[types.MemberOut]:
    """Add a member to a group."""
    return Call(
        "join_group",
        "PUT",
        "/v1/groups/{group}/members/{user}",
        path={"group": group, "user": user},
        body={},
    )


def leave_group(group: Id, user: Id) -> Call[None]:
    """Remove a member from a group."""
    return Call(
        "leave_group",
        "DELETE",
        "/v1/groups/{group}/members/{user}",
        path={"group": group, "user": user},
        may_be_empty=True,
    )


def list_group_messages(
    group: Id,
    *,
    after: int | None = None,
    before: int | None = None,
    around: int | None = None,
    limit: int | None = None,
    wait: int | None = None,
) -> Call[types.GroupMessagesOut]:
    """List the messages of a group."""
    return Call(
        "list_group_messages",
        "GET",
        "/v1/groups/{group}/messages",
        path={"group": group},
        query={"after": after, "before": before, "around": around, "limit": limit, "wait": wait},
    )


def send_group_message(
    group: Id,
    *,
    client_id: types.ClientId,
    content: str,
    mention_all: bool | None = None,
    mentions: Sequence[Id] | None = None,
    sender_id: Id | None = None,
) -> Call[types.GroupSentOut]:
    """Send a message to a group."""
    return Call(
        "send_group_message",
        "POST",
        "/v1/groups/{group}/messages",
        path={"group": group},
        body={
            "client_id": client_id,
            "content": content,
            "mention_all": mention_all,
            "mentions": mentions,
            "sender_id": sender_id,
        },
    )


def list_group_message_changes(
    group: Id, *, after: int | None = None, limit: int | None = None, wait: int | None = None
) -> Call[types.GroupMessageChangesOut]:
    """List changes of group messages."""
    return Call(
        "list_group_message_changes",
        "GET",
        "/v1/groups/{group}/messages/changes",
        path={"group": group},
        query={"after": after, "limit": limit, "wait": wait},
    )


def recall_group_message(group: Id, seq: types.Seq) -> Call[None]:
    """Recall a group message."""
    return Call(
        "recall_group_message",
        "DELETE",
        "/v1/groups/{group}/messages/{seq}",
        path={"group": group, "seq": seq},
        may_be_empty=True,
    )


def get_receipts(
    group: Id,
    seq: types.Seq,
    *,
    members: Literal["read", "unread"] | None = None,
    format: Literal["bitmap"] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    wait: int | None = None,
) -> Call[types.ReceiptsAnswer]:
    """Get the receipts of a message."""
    return Call(
        "get_receipts",
        "GET",
        "/v1/groups/{group}/messages/{seq}/receipts",
        path={"group": group, "seq": seq},
        query={
            "members": members,
            "format": format,
            "limit": limit,
            "cursor": cursor,
            "wait": wait,
        },
    )


def list_receipts(
    group: Id, *, from_: int, to: int, wait: int | None = None
) -> Call[types.ScreenfulOut]:
    """Count the receipts of several messages."""
    return Call(
        "list_receipts",
        "GET",
        "/v1/groups/{group}/receipts",
        path={"group": group},
        query={"from": from_, "to": to, "wait": wait},
    )


def send_notification(
    *,
    recipients: Sequence[Id],
    type: types.Name,
    actor_id: Id | None = None,
    content: str | None = None,
    data: Mapping[str, Any] | None = None,
    group_key: types.ClientId | None = None,
    title: str | None = None,
    idempotency_key: str | None = None,
) -> Call[types.NotificationOut]:
    """Send a notification."""
    return Call(
        "send_notification",
        "POST",
        "/v1/notifications",
        idempotency_key=idempotency_key,
        takes_key=True,
        body={
            "actor_id": actor_id,
            "content": content,
            "data": data,
            "group_key": group_key,
            "recipients": recipients,
            "title": title,
            "type": type,
        },
    )


def get_notification(notification_id: Id) -> Call[types.NotificationOut]:
    """Get a notification."""
    return Call(
        "get_notification",
        "GET",
        "/v1/notifications/{notification_id}",
        path={"notification_id": notification_id},
    )


def edit_notification(
    notification_id: Id,
    *,
    content: str | None = None,
    data: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> Call[types.NotificationOut]:
    """Edit a notification."""
    return Call(
        "edit_notification",
        "PUT",
        "/v1/notifications/{notification_id}",
        path={"notification_id": notification_id},
        body={"content": content, "data": data, "title": title},
    )


def withdraw_notification(notification_id: Id) -> Call[None]:
    """Withdraw a notification."""
    return Call(
        "withdraw_notification",
        "DELETE",
        "/v1/notifications/{notification_id}",
        path={"notification_id": notification_id},
        may_be_empty=True,
    )


def get_operation(id: types.OperationId) -> Call[types.OperationOut]:
    """Get an asynchronous operation."""
    return Call("get_operation", "GET", "/v1/operations/{id}", path={"id": id})


def put_posts(
    *, items: Sequence[types.PutPostsItemIn], idempotency_key: str | None = None
) -> Call[types.PostsOut]:
    """Register many posts."""
    return Call(
        "put_posts",
        "POST",
        "/v1/posts",
        idempotency_key=idempotency_key,
        takes_key=True,
        body={"items": items},
    )


def query_relations(*, pairs: Sequence[types.PairIn]) -> Call[types.QueryRelationsOut]:
    """Query relations of many pairs."""
    return Call("query_relations", "POST", "/v1/relations/query", body={"pairs": pairs})


def erase_user(user: Id) -> Call[types.AcceptedOut]:
    """Erase a user."""
    return Call("erase_user", "DELETE", "/v1/users/{user}", path={"user": user})


def get_unread_summary(
    user: Id,
    *,
    include: str | None = None,
    cap: int | None = None,
    views: str | None = None,
    wait: int | None = None,
) -> Call[types.UnreadSummaryOut]:
    """Poll a user's unread summary."""
    return Call(
        "get_unread_summary",
        "GET",
        "/v1/users/{user}/badges",
        path={"user": user},
        query={"include": include, "cap": cap, "views": views, "wait": wait},
    )


def explain_badges(user: Id) -> Call[types.ExplainOut]:
    """Explain a user's unread summary."""
    return Call("explain_badges", "GET", "/v1/users/{user}/badges/explain", path={"user": user})


def reset_badges(
    user: Id, *, up_to: Mapping[str, types.ShownHead] | None = None
) -> Call[types.UnreadSummaryOut]:
    """Mark badges as read."""
    return Call(
        "reset_badges",
        "POST",
        "/v1/users/{user}/badges/reset",
        path={"user": user},
        body={"up_to": up_to},
    )


def delete_badge(user: Id, badge: types.Name) -> Call[types.DeletedBadgeOut]:
    """Delete a badge."""
    return Call(
        "delete_badge",
        "DELETE",
        "/v1/users/{user}/badges/{badge}",
        path={"user": user, "badge": badge},
    )


def increment_badge(
    user: Id, badge: types.Name, *, by: int | None = None, idempotency_key: str | None = None
) -> Call[types.BadgeOut]:
    """Increment a badge."""
    return Call(
        "increment_badge",
        "POST",
        "/v1/users/{user}/badges/{badge}/increment",
        path={"user": user, "badge": badge},
        idempotency_key=idempotency_key,
        takes_key=True,
        body={"by": by},
    )


def reset_badge(user: Id, badge: types.Name, *, up_to: int | None = None) -> Call[types.BadgeOut]:
    """Mark a badge as read."""
    return Call(
        "reset_badge",
        "POST",
        "/v1/users/{user}/badges/{badge}/reset",
        path={"user": user, "badge": badge},
        body={"up_to": up_to},
    )


def retract_badge(
    user: Id,
    badge: types.Name,
    *,
    at: int | None = None,
    by: int | None = None,
    idempotency_key: str | None = None,
) -> Call[types.BadgeOut]:
    """Retract an increment of a badge."""
    return Call(
        "retract_badge",
        "POST",
        "/v1/users/{user}/badges/{badge}/retract",
        path={"user": user, "badge": badge},
        idempotency_key=idempotency_key,
        takes_key=True,
        body={"at": at, "by": by},
    )


def list_blocks(
    user: Id, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_ListedUserOut]:
    """List the users that a user blocks."""
    return Call(
        "list_blocks",
        "GET",
        "/v1/users/{user}/blocks",
        path={"user": user},
        query={"limit": limit, "cursor": cursor},
    )


def get_blocks_ids(user: Id, *, wait: int | None = None) -> Call[types.WholeListOut]:
    """Poll the ids of all users that a user blocks."""
    return Call(
        "get_blocks_ids",
        "GET",
        "/v1/users/{user}/blocks/ids",
        path={"user": user},
        query={"wait": wait},
    )


def block_user(
    user: Id, target: Id, *, respond_async: bool = False
) -> Call[types.ChangedRelationOut | types.AcceptedOut]:
    """Block a user."""
    return Call(
        "block_user",
        "PUT",
        "/v1/users/{user}/blocks/{target}",
        path={"user": user, "target": target},
        respond_async=respond_async,
        body={},
    )


def unblock_user(
    user: Id, target: Id, *, respond_async: bool = False
) -> Call[types.AcceptedOut | None]:
    """Unblock a user."""
    return Call(
        "unblock_user",
        "DELETE",
        "/v1/users/{user}/blocks/{target}",
        path={"user": user, "target": target},
        respond_async=respond_async,
        may_be_empty=True,
    )


def list_user_broadcasts(
    user: Id, channel: types.Name, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_NoticeOut]:
    """List a user's broadcasts of a channel."""
    return Call(
        "list_user_broadcasts",
        "GET",
        "/v1/users/{user}/broadcasts/{channel}",
        path={"user": user, "channel": channel},
        query={"limit": limit, "cursor": cursor},
    )


def read_broadcasts(
    user: Id, channel: types.Name, *, up_to: int | None = None
) -> Call[types.ChannelOut]:
    """Mark a channel as read."""
    return Call(
        "read_broadcasts",
        "POST",
        "/v1/users/{user}/broadcasts/{channel}/read",
        path={"user": user, "channel": channel},
        body={"up_to": up_to},
    )


def list_chats(
    user: Id,
    *,
    unread: bool | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    wait: int | None = None,
) -> Call[types.PageOut_ChatOut]:
    """Poll a user's chats."""
    return Call(
        "list_chats",
        "GET",
        "/v1/users/{user}/chats",
        path={"user": user},
        query={"unread": unread, "limit": limit, "cursor": cursor, "wait": wait},
    )


def get_direct_chat(user: Id, peer: Id, *, wait: int | None = None) -> Call[types.ChatOut]:
    """Poll a user's direct chat."""
    return Call(
        "get_direct_chat",
        "GET",
        "/v1/users/{user}/chats/direct/{peer}",
        path={"user": user, "peer": peer},
        query={"wait": wait},
    )


def get_group_chat(user: Id, group: Id, *, wait: int | None = None) -> Call[types.ChatOut]:
    """Poll a user's group chat."""
    return Call(
        "get_group_chat",
        "GET",
        "/v1/users/{user}/chats/group/{group}",
        path={"user": user, "group": group},
        query={"wait": wait},
    )


def read_chats(
    user: Id, *, up_to: types.ReadChatsUpToIn | None = None
) -> Call[types.UnreadSummaryOut]:
    """Mark chats as read."""
    return Call(
        "read_chats",
        "POST",
        "/v1/users/{user}/chats/read",
        path={"user": user},
        body={"up_to": up_to},
    )


def list_devices(user: Id) -> Call[types.DevicesOut]:
    """List a user's devices."""
    return Call("list_devices", "GET", "/v1/users/{user}/devices", path={"user": user})


def put_device(user: Id, device_id: types.ClientId, *, push: bool) -> Call[types.DeviceOut]:
    """Set whether a device gets pushes."""
    return Call(
        "put_device",
        "PUT",
        "/v1/users/{user}/devices/{device_id}",
        path={"user": user, "device_id": device_id},
        body={"push": push},
    )


def delete_device(user: Id, device_id: types.ClientId) -> Call[None]:
    """Delete a device."""
    return Call(
        "delete_device",
        "DELETE",
        "/v1/users/{user}/devices/{device_id}",
        path={"user": user, "device_id": device_id},
        may_be_empty=True,
    )


def put_cursor(user: Id, device_id: types.ClientId, *, seq: int) -> Call[types.DeviceOut]:
    """Update a device's inbox cursor."""
    return Call(
        "put_cursor",
        "PUT",
        "/v1/users/{user}/devices/{device_id}/cursor",
        path={"user": user, "device_id": device_id},
        body={"seq": seq},
    )


def list_directs(
    user: Id, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
) -> Call[types.PageOut_DirectOut]:
    """Poll a user's direct chats."""
    return Call(
        "list_directs",
        "GET",
        "/v1/users/{user}/directs",
        path={"user": user},
        query={"limit": limit, "cursor": cursor, "wait": wait},
    )


def get_direct(user: Id, peer: Id, *, wait: int | None = None) -> Call[types.DirectOut]:
    """Poll a direct chat."""
    return Call(
        "get_direct",
        "GET",
        "/v1/users/{user}/directs/{peer}",
        path={"user": user, "peer": peer},
        query={"wait": wait},
    )


def list_direct_messages(
    user: Id,
    peer: Id,
    *,
    after: int | None = None,
    before: int | None = None,
    around: int | None = None,
    limit: int | None = None,
) -> Call[types.DirectMessagesOut]:
    """List the messages of a direct chat."""
    return Call(
        "list_direct_messages",
        "GET",
        "/v1/users/{user}/directs/{peer}/messages",
        path={"user": user, "peer": peer},
        query={"after": after, "before": before, "around": around, "limit": limit},
    )


def recall_direct_message(user: Id, peer: Id, seq: types.Seq) -> Call[None]:
    """Recall a direct message."""
    return Call(
        "recall_direct_message",
        "DELETE",
        "/v1/users/{user}/directs/{peer}/messages/{seq}",
        path={"user": user, "peer": peer, "seq": seq},
        may_be_empty=True,
    )


def read_direct(user: Id, peer: Id, *, up_to: int | None = None) -> Call[types.ReadDirectOut]:
    """Mark a direct chat as read."""
    return Call(
        "read_direct",
        "POST",
        "/v1/users/{user}/directs/{peer}/read",
        path={"user": user, "peer": peer},
        body={"up_to": up_to},
    )


def get_direct_receipts(
    user: Id, peer: Id, *, wait: int | None = None
) -> Call[types.DirectReceiptsOut]:
    """Poll the receipts of a direct chat."""
    return Call(
        "get_direct_receipts",
        "GET",
        "/v1/users/{user}/directs/{peer}/receipts",
        path={"user": user, "peer": peer},
        query={"wait": wait},
    )


def put_direct_settings(
    user: Id, peer: Id, *, level: types.DirectLevel, until: types.UnixMs | None = None
) -> Call[types.DirectSettingsOut]:
    """Update the settings of a direct chat."""
    return Call(
        "put_direct_settings",
        "PUT",
        "/v1/users/{user}/directs/{peer}/settings",
        path={"user": user, "peer": peer},
        body={"level": level, "until": until},
    )


def unread_direct(user: Id, peer: Id, *, from_: int) -> Call[types.ReadDirectOut]:
    """Mark a direct chat as unread."""
    return Call(
        "unread_direct",
        "POST",
        "/v1/users/{user}/directs/{peer}/unread",
        path={"user": user, "peer": peer},
        body={"from": from_},
    )


def clear_dot(user: Id, dot: types.Name, *, up_to: int | None = None) -> Call[types.UserDotOut]:
    """Clear a dot."""
    return Call(
        "clear_dot",
        "POST",
        "/v1/users/{user}/dots/{dot}/clear",
        path={"user": user, "dot": dot},
        body={"up_to": up_to},
    )


def list_familiar_followers(user: Id, *, ids: str) -> Call[types.FamiliarFollowersOut]:
    """List familiar followers."""
    return Call(
        "list_familiar_followers",
        "GET",
        "/v1/users/{user}/familiar",
        path={"user": user},
        query={"ids": ids},
    )


def get_feed(user: Id, *, wait: int | None = None) -> Call[types.FeedOut]:
    """Poll a user's feed."""
    return Call(
        "get_feed", "GET", "/v1/users/{user}/feed", path={"user": user}, query={"wait": wait}
    )


def reset_feed(user: Id, *, up_to: str | None = None) -> Call[types.ResetFeedOut]:
    """Mark a feed as seen."""
    return Call(
        "reset_feed",
        "POST",
        "/v1/users/{user}/feed/reset",
        path={"user": user},
        body={"up_to": up_to},
    )


def list_follow_requests(
    user: Id, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_FollowRequestOut]:
    """List the follow requests that a user has received."""
    return Call(
        "list_follow_requests",
        "GET",
        "/v1/users/{user}/follow-requests",
        path={"user": user},
        query={"limit": limit, "cursor": cursor},
    )


def list_sent_follow_requests(
    user: Id, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_FollowRequestOut]:
    """List the follow requests that a user has sent."""
    return Call(
        "list_sent_follow_requests",
        "GET",
        "/v1/users/{user}/follow-requests/sent",
        path={"user": user},
        query={"limit": limit, "cursor": cursor},
    )


def accept_follow_request(
    user: Id, fan: Id, *, respond_async: bool = False
) -> Call[types.ChangedRelationOut | types.AcceptedOut]:
    """Accept a follow request."""
    return Call(
        "accept_follow_request",
        "PUT",
        "/v1/users/{user}/follow-requests/{fan}",
        path={"user": user, "fan": fan},
        respond_async=respond_async,
        body={},
    )


def refuse_follow_request(
    user: Id, fan: Id, *, respond_async: bool = False
) -> Call[types.AcceptedOut | None]:
    """Refuse a follow request."""
    return Call(
        "refuse_follow_request",
        "DELETE",
        "/v1/users/{user}/follow-requests/{fan}",
        path={"user": user, "fan": fan},
        respond_async=respond_async,
        may_be_empty=True,
    )


def list_followers(
    user: Id, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_ListedUserOut]:
    """List a user's followers."""
    return Call(
        "list_followers",
        "GET",
        "/v1/users/{user}/followers",
        path={"user": user},
        query={"limit": limit, "cursor": cursor},
    )


def remove_follower(
    user: Id, fan: Id, *, respond_async: bool = False
) -> Call[types.AcceptedOut | None]:
    """Remove a follower."""
    return Call(
        "remove_follower",
        "DELETE",
        "/v1/users/{user}/followers/{fan}",
        path={"user": user, "fan": fan},
        respond_async=respond_async,
        may_be_empty=True,
    )


def list_following(
    user: Id,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    visibility: Literal["public", "secret", "all"] | None = None,
) -> Call[types.PageOut_ListedUserOut]:
    """List the users that a user follows."""
    return Call(
        "list_following",
        "GET",
        "/v1/users/{user}/following",
        path={"user": user},
        query={"limit": limit, "cursor": cursor, "visibility": visibility},
    )


def get_following_ids(user: Id, *, wait: int | None = None) -> Call[types.WholeListOut]:
    """Poll the ids of all users that a user follows."""
    return Call(
        "get_following_ids",
        "GET",
        "/v1/users/{user}/following/ids",
        path={"user": user},
        query={"wait": wait},
    )


def follow_user(
    user: Id,
    target: Id,
    *,
    special: bool | None = None,
    visibility: types.Visibility | None = None,
    respond_async: bool = False,
) -> Call[types.ChangedRelationOut | types.AcceptedOut]:
    """Follow a user."""
    return Call(
        "follow_user",
        "PUT",
        "/v1/users/{user}/following/{target}",
        path={"user": user, "target": target},
        respond_async=respond_async,
        body={"special": special, "visibility": visibility},
    )


def unfollow_user(
    user: Id, target: Id, *, respond_async: bool = False
) -> Call[types.AcceptedOut | None]:
    """Unfollow a user."""
    return Call(
        "unfollow_user",
        "DELETE",
        "/v1/users/{user}/following/{target}",
        path={"user": user, "target": target},
        respond_async=respond_async,
        may_be_empty=True,
    )


def list_user_groups(
    user: Id, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
) -> Call[types.PageOut_UserGroupOut]:
    """List a user's groups."""
    return Call(
        "list_user_groups",
        "GET",
        "/v1/users/{user}/groups",
        path={"user": user},
        query={"limit": limit, "cursor": cursor, "wait": wait},
    )


def get_user_group(user: Id, group: Id, *, wait: int | None = None) -> Call[types.UserGroupOut]:
    """Get a user's group."""
    return Call(
        "get_user_group",
        "GET",
        "/v1/users/{user}/groups/{group}",
        path={"user": user, "group": group},
        query={"wait": wait},
    )


def read_group_message(user: Id, group: Id, seq: types.Seq) -> Call[types.ReadGroupOut]:
    """Mark one group message as read."""
    return Call(
        "read_group_message",
        "POST",
        "/v1/users/{user}/groups/{group}/messages/{seq}/read",
        path={"user": user, "group": group, "seq": seq},
        body={},
    )


def read_group(user: Id, group: Id, *, up_to: int | None = None) -> Call[types.ReadGroupOut]:
    """Mark a group as read."""
    return Call(
        "read_group",
        "POST",
        "/v1/users/{user}/groups/{group}/read",
        path={"user": user, "group": group},
        body={"up_to": up_to},
    )


def put_group_settings(
    user: Id, group: Id, *, level: types.Level, until: types.UnixMs | None = None
) -> Call[types.GroupSettingsOut]:
    """Update a user's settings of a group."""
    return Call(
        "put_group_settings",
        "PUT",
        "/v1/users/{user}/groups/{group}/settings",
        path={"user": user, "group": group},
        body={"level": level, "until": until},
    )


def unread_group(user: Id, group: Id, *, from_: int) -> Call[types.ReadGroupOut]:
    """Mark group messages as unread again."""
    return Call(
        "unread_group",
        "POST",
        "/v1/users/{user}/groups/{group}/unread",
        path={"user": user, "group": group},
        body={"from": from_},
    )


def get_inbox(
    user: Id,
    *,
    after: int | None = None,
    device: types.ClientId | None = None,
    limit: int | None = None,
    wait: int | None = None,
    epoch: str | None = None,
) -> Call[types.InboxOut]:
    """Fetch a user's inbox."""
    return Call(
        "get_inbox",
        "GET",
        "/v1/users/{user}/inbox",
        path={"user": user},
        query={"after": after, "device": device, "limit": limit, "wait": wait, "epoch": epoch},
    )


def send_direct(
    user: Id, *, client_id: types.ClientId, content: str, sender_id: Id | None = None
) -> Call[types.SentOut]:
    """Send a direct message."""
    return Call(
        "send_direct",
        "POST",
        "/v1/users/{user}/inbox",
        path={"user": user},
        body={"client_id": client_id, "content": content, "sender_id": sender_id},
    )


def list_mutes(
    user: Id, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_MutedUserOut]:
    """List the users that a user mutes."""
    return Call(
        "list_mutes",
        "GET",
        "/v1/users/{user}/mutes",
        path={"user": user},
        query={"limit": limit, "cursor": cursor},
    )


def get_mutes_ids(user: Id, *, wait: int | None = None) -> Call[types.WholeListOut]:
    """Poll the ids of all users that a user mutes."""
    return Call(
        "get_mutes_ids",
        "GET",
        "/v1/users/{user}/mutes/ids",
        path={"user": user},
        query={"wait": wait},
    )


def mute_user(user: Id, target: Id, *, until: types.UnixMs | None = None) -> Call[types.MutedOut]:
    """Mute a user."""
    return Call(
        "mute_user",
        "PUT",
        "/v1/users/{user}/mutes/{target}",
        path={"user": user, "target": target},
        body={"until": until},
    )


def unmute_user(user: Id, target: Id) -> Call[None]:
    """Unmute a user."""
    return Call(
        "unmute_user",
        "DELETE",
        "/v1/users/{user}/mutes/{target}",
        path={"user": user, "target": target},
        may_be_empty=True,
    )


def list_mutuals(
    user: Id, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_ListedUserOut]:
    """List mutual follows."""
    return Call(
        "list_mutuals",
        "GET",
        "/v1/users/{user}/mutuals",
        path={"user": user},
        query={"limit": limit, "cursor": cursor},
    )


def list_notifications(
    user: Id,
    *,
    status: Literal["unread", "unseen", "read", "all"] | None = None,
    type: types.Name | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    wait: int | None = None,
) -> Call[types.PageOut_NotificationEntryOut]:
    """Poll a user's notifications."""
    return Call(
        "list_notifications",
        "GET",
        "/v1/users/{user}/notifications",
        path={"user": user},
        query={"status": status, "type": type, "limit": limit, "cursor": cursor, "wait": wait},
    )


def read_notifications(
    user: Id,
    *,
    all: bool | None = None,
    ids: Sequence[Id] | None = None,
    type: types.Name | None = None,
    up_to_seq: int | None = None,
) -> Call[types.ReadNotificationsOut]:
    """Mark notifications as read."""
    return Call(
        "read_notifications",
        "POST",
        "/v1/users/{user}/notifications/read",
        path={"user": user},
        body={"all": all, "ids": ids, "type": type, "up_to_seq": up_to_seq},
    )


def see_notifications(
    user: Id, *, up_to_seq: int | None = None
) -> Call[types.SeenNotificationsOut]:
    """Mark the list of notifications as seen."""
    return Call(
        "see_notifications",
        "POST",
        "/v1/users/{user}/notifications/seen",
        path={"user": user},
        body={"up_to_seq": up_to_seq},
    )


def delete_notification(user: Id, id: Id) -> Call[types.DeletedNotificationOut]:
    """Delete a notification from a user's list."""
    return Call(
        "delete_notification",
        "DELETE",
        "/v1/users/{user}/notifications/{id}",
        path={"user": user, "id": id},
    )


def read_notification(user: Id, id: Id) -> Call[types.ReadNotificationOut]:
    """Mark a notification as read."""
    return Call(
        "read_notification",
        "POST",
        "/v1/users/{user}/notifications/{id}/read",
        path={"user": user, "id": id},
        body={},
    )


def unread_notification(user: Id, id: Id) -> Call[types.ReadNotificationOut]:
    """Mark a notification as unread."""
    return Call(
        "unread_notification",
        "POST",
        "/v1/users/{user}/notifications/{id}/unread",
        path={"user": user, "id": id},
        body={},
    )


def count_posts(user: Id) -> Call[types.PostCountOut]:
    """Count a creator's posts."""
    return Call("count_posts", "GET", "/v1/users/{user}/posts/count", path={"user": user})


def put_post(user: Id, post_id: types.ClientId) -> Call[types.PostOut]:
    """Register a post."""
    return Call(
        "put_post",
        "PUT",
        "/v1/users/{user}/posts/{post_id}",
        path={"user": user, "post_id": post_id},
        body={},
    )


def delete_post(user: Id, post_id: types.ClientId) -> Call[None]:
    """Delete a post."""
    return Call(
        "delete_post",
        "DELETE",
        "/v1/users/{user}/posts/{post_id}",
        path={"user": user, "post_id": post_id},
        may_be_empty=True,
    )


def get_relation_counts(user: Id) -> Call[types.RelationCountsOut]:
    """Count a user's relations."""
    return Call(
        "get_relation_counts", "GET", "/v1/users/{user}/relation-counts", path={"user": user}
    )


def get_relations(user: Id, *, ids: str) -> Call[types.RelationsOut]:
    """Look up a user's relations."""
    return Call(
        "get_relations",
        "GET",
        "/v1/users/{user}/relations",
        path={"user": user},
        query={"ids": ids},
    )


def get_settings(user: Id) -> Call[types.SettingsOut]:
    """Get a user's settings."""
    return Call("get_settings", "GET", "/v1/users/{user}/settings", path={"user": user})


def patch_settings(
    user: Id,
    *,
    approve_follows: bool | None = None,
    lists: types.ListsOut | None = None,
    not_in_total: Sequence[types.TotalPart] | None = None,
    share_receipts: bool | None = None,
) -> Call[types.SettingsOut]:
    """Update a user's settings."""
    return Call(
        "patch_settings",
        "PATCH",
        "/v1/users/{user}/settings",
        path={"user": user},
        body={
            "approve_follows": approve_follows,
            "lists": lists,
            "not_in_total": not_in_total,
            "share_receipts": share_receipts,
        },
    )


def list_special(
    user: Id, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.PageOut_ListedUserOut]:
    """List the users who are special to a user."""
    return Call(
        "list_special",
        "GET",
        "/v1/users/{user}/special",
        path={"user": user},
        query={"limit": limit, "cursor": cursor},
    )


def get_view(
    user: Id, view: types.Name, view_id: types.ClientId, *, wait: int | None = None
) -> Call[types.UserViewOut]:
    """Poll a view."""
    return Call(
        "get_view",
        "GET",
        "/v1/users/{user}/views/{view}/{view_id}",
        path={"user": user, "view": view, "view_id": view_id},
        query={"wait": wait},
    )


def access_view(
    user: Id, view: types.Name, view_id: types.ClientId, *, up_to: int | None = None
) -> Call[types.UserViewOut]:
    """Visit a view."""
    return Call(
        "access_view",
        "POST",
        "/v1/users/{user}/views/{view}/{view_id}/access",
        path={"user": user, "view": view, "view_id": view_id},
        body={"up_to": up_to},
    )


def put_view_items(
    *, items: Sequence[types.PutViewItemsItemIn], idempotency_key: str | None = None
) -> Call[types.ViewItemsOut]:
    """Add items to many views."""
    return Call(
        "put_view_items",
        "POST",
        "/v1/views/items",
        idempotency_key=idempotency_key,
        takes_key=True,
        body={"items": items},
    )


def put_view_item(
    view: types.Name,
    view_id: types.ClientId,
    item_id: types.ClientId,
    *,
    actor_id: Id | None = None,
) -> Call[types.ViewItemOut]:
    """Add an item to a view."""
    return Call(
        "put_view_item",
        "PUT",
        "/v1/views/{view}/{view_id}/items/{item_id}",
        path={"view": view, "view_id": view_id, "item_id": item_id},
        body={"actor_id": actor_id},
    )


def delete_view_item(
    view: types.Name, view_id: types.ClientId, item_id: types.ClientId
) -> Call[None]:
    """Delete an item from a view."""
    return Call(
        "delete_view_item",
        "DELETE",
        "/v1/views/{view}/{view_id}/items/{item_id}",
        path={"view": view, "view_id": view_id, "item_id": item_id},
        may_be_empty=True,
    )
