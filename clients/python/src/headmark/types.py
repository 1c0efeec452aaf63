"""The bodies of requests and answers. Written by `scripts/generate.py`: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from typing_extensions import NotRequired, TypedDict

# Answers have ids as strings. Requests take numbers, too.
Id: TypeAlias = str | int

ChatKind: TypeAlias = Literal["group", "direct"]

ClientId: TypeAlias = str

Code: TypeAlias = Literal[
    "malformed_json",
    "malformed_request",
    "invalid_path",
    "invalid_query",
    "wait_needs_tag",
    "invalid_header",
    "invalid_cursor",
    "unauthorized",
    "forbidden",
    "receipts_hidden",
    "lists_hidden",
    "blocked",
    "cross_origin",
    "unknown_route",
    "not_found",
    "method_not_allowed",
    "request_timeout",
    "following_limit",
    "receipts_disabled",
    "too_large",
    "too_many",
    "idempotency_in_progress",
    "gone",
    "erased",
    "inbox_reset",
    "cursor_expired",
    "body_too_large",
    "unsupported_media_type",
    "invalid_body",
    "self_relation",
    "idempotency_key_reused",
    "rate_limited",
    "overloaded",
    "store_unavailable",
    "operations_pending",
    "outcome_unknown",
    "shutting_down",
    "internal_error",
]

Delivery: TypeAlias = Literal["read", "write"]

DirectLevel: TypeAlias = Literal["all", "none"]

GroupId: TypeAlias = str

IdempotencyKey: TypeAlias = str

KindName: TypeAlias = str

Level: TypeAlias = Literal["all", "mentions", "none"]

ListsOut: TypeAlias = Literal["all", "followers", "self"]

Name: TypeAlias = str

NotificationChange: TypeAlias = Literal["sent", "edited", "withdrawn"]

NotificationId: TypeAlias = str

OperationId: TypeAlias = str

OperationStatus: TypeAlias = Literal["pending", "done", "failed"]

PartState: TypeAlias = Literal["ok", "away", "lagging", "bypassed", "draining", "failed"]

SenderIn: TypeAlias = str

Seq: TypeAlias = int

ShownHead: TypeAlias = int

TotalPart: TypeAlias = str

UnixMs: TypeAlias = str

UserId: TypeAlias = str

UserOrMe: TypeAlias = str

Visibility: TypeAlias = Literal["public", "secret"]


class AcceptedOut(TypedDict):
    """The response to an asynchronous write."""

    operation_id: OperationId
    status: OperationStatus


class AccessViewIn(TypedDict):
    """A visit."""

    up_to: NotRequired[int]


class BadgeOut(TypedDict):
    """A badge after a write."""

    badge: Name
    head: int
    revision: int
    unread: int


class BroadcastChannelOut(TypedDict):
    """A channel in the list of channels."""

    channel: Name
    head: int


class BroadcastEventOut(TypedDict):
    """A broadcast of a channel."""

    channel: Name
    channel_deleted: NotRequired[bool]
    seq: int
    withdrawn: bool


class ChangedRelationOut(TypedDict):
    """The relation after a write."""

    blocking: bool
    followed_by: bool
    following: bool
    muting: bool
    mutual: bool
    requested: bool
    secret: bool
    special: bool
    user_id: UserId
    revision: int


class ChannelOut(TypedDict):
    """The unread broadcasts of a user in a channel."""

    channel: Name
    head: int
    revision: int
    unread: int


class ChannelTermsOut(TypedDict):
    """A channel: unread = the broadcasts after both the mark and the enrolment, minus withdrawn and expired ones."""

    gone: int
    head: int
    mark: int
    seq_at_enrolment: int
    unread: int


class ChatOut(TypedDict):
    """A chat of a user."""

    first_unread_seq: NotRequired[int]
    head: int
    id: str
    kind: ChatKind
    last: GroupMessageOut | None
    last_at: NotRequired[UnixMs]
    level: Level
    level_until: NotRequired[UnixMs]
    mentions: int
    read_seq: int
    unread: int


class ChatTermsOut(TypedDict):
    """Groups and direct chats: the sum over the chats that count."""

    directs: list[DirectTermsOut]
    groups: list[GroupTermsOut]
    unread: int


class ChatsOut(TypedDict):
    """Unread messages of groups and direct chats."""

    capped: NotRequired[bool]
    directs: int
    groups: int
    mentions: int
    unread: int


class ClearDotIn(TypedDict):
    """How far a user has seen a dot."""

    up_to: NotRequired[int]


class CounterOut(TypedDict):
    """An unread count with the head at which it was taken."""

    capped: NotRequired[bool]
    head: int
    unread: int


class CounterTermsOut(TypedDict):
    """A counter: unread = head − mark − retracted."""

    head: int
    mark: int
    retracted: str
    unread: int


class CreatorTermsOut(TypedDict):
    """A creator: unread = the posts after the mark, minus deleted ones."""

    gone: int
    head: int
    mark: int
    muted: NotRequired[bool]
    unread: int
    user_id: UserId


class DeletedBadgeOut(TypedDict):
    """A user after the deletion of a badge."""

    revision: int


class DeletedNotificationOut(TypedDict):
    """The result of deleting an entry from a user's list."""

    revision: int


class DeviceOut(TypedDict):
    """A device of a user."""

    created_at: UnixMs
    cursor: NotRequired[int]
    device_id: ClientId
    lag: NotRequired[int]
    last_seen_at: UnixMs
    push: bool


class DevicesOut(TypedDict):
    """A user's devices."""

    head: int
    items: list[DeviceOut]


class DirectMessageEventOut(TypedDict):
    """A direct message."""

    own_seq: int
    recalled: bool
    receiver_id: UserId
    sender_id: UserId
    seq: NotRequired[int]


class DirectMessagesOut(TypedDict):
    """A page of a direct chat: in descending order with `before`, otherwise in ascending order."""

    has_more: bool
    has_older: NotRequired[bool]
    head: int
    items: list[ItemOut]
    next_after: int
    next_before: NotRequired[int]


class DirectOut(TypedDict):
    """A direct chat of a user."""

    first_unread_seq: NotRequired[int]
    last_at: NotRequired[UnixMs]
    last_seq: int
    level: DirectLevel
    level_until: NotRequired[UnixMs]
    peer_id: UserId
    read_seq: int
    unread: int


class DirectReceiptsOut(TypedDict):
    """How far the other user of a direct chat is."""

    delivered_seq: int
    read_seq: int


class DirectSettingsOut(TypedDict):
    """The settings of a direct chat."""

    last_seq: int
    level: DirectLevel
    level_until: NotRequired[UnixMs]
    peer_id: UserId
    revision: int
    unread: int


class DirectTermsOut(TypedDict):
    """A direct chat with unread messages: unread = head − mark − recalled."""

    head: int
    level: DirectLevel
    level_until: NotRequired[UnixMs]
    mark: int
    peer_id: UserId
    recalled: int
    unread: int


class DotOut(TypedDict):
    """A red dot."""

    head: int
    lit: bool


class DotTermsOut(TypedDict):
    """A dot: lit if it was lit after both the mark and the enrolment."""

    after_enrolment: bool
    head: int
    lit: bool
    lit_at: UnixMs
    mark: int


class EditNotificationIn(TypedDict):
    """What of a notification is edited."""

    content: NotRequired[str]
    data: NotRequired[Mapping[str, Any]]
    title: NotRequired[str]


class EventRelation(TypedDict):
    """A change."""

    data: RelationEventOut
    type: Literal["relation"]


class EventBroadcast(TypedDict):
    """A change."""

    data: BroadcastEventOut
    type: Literal["broadcast"]


class EventPost(TypedDict):
    """A change."""

    data: PostEventOut
    type: Literal["post"]


class EventMember(TypedDict):
    """A change."""

    data: MemberEventOut
    type: Literal["member"]


class EventGroupMessage(TypedDict):
    """A change."""

    data: GroupMessageEventOut
    type: Literal["group_message"]


class EventDirectMessage(TypedDict):
    """A change."""

    data: DirectMessageEventOut
    type: Literal["direct_message"]


class EventNotification(TypedDict):
    """A change."""

    data: NotificationEventOut
    type: Literal["notification"]


class EventUnread(TypedDict):
    """A change."""

    data: UnreadEventOut
    type: Literal["unread"]


class EventUserErased(TypedDict):
    """A change."""

    data: UserErasedEventOut
    type: Literal["user_erased"]


class EventOutRelation(TypedDict):
    """An event."""

    data: RelationEventOut
    type: Literal["relation"]
    at: UnixMs
    id: int


class EventOutBroadcast(TypedDict):
    """An event."""

    data: BroadcastEventOut
    type: Literal["broadcast"]
    at: UnixMs
    id: int


class EventOutPost(TypedDict):
    """An event."""

    data: PostEventOut
    type: Literal["post"]
    at: UnixMs
    id: int


class EventOutMember(TypedDict):
    """An event."""

    data: MemberEventOut
    type: Literal["member"]
    at: UnixMs
    id: int


class EventOutGroupMessage(TypedDict):
    """An event."""

    data: GroupMessageEventOut
    type: Literal["group_message"]
    at: UnixMs
    id: int


class EventOutDirectMessage(TypedDict):
    """An event."""

    data: DirectMessageEventOut
    type: Literal["direct_message"]
    at: UnixMs
    id: int


class EventOutNotification(TypedDict):
    """An event."""

    data: NotificationEventOut
    type: Literal["notification"]
    at: UnixMs
    id: int


class EventOutUnread(TypedDict):
    """An event."""

    data: UnreadEventOut
    type: Literal["unread"]
    at: UnixMs
    id: int


class EventOutUserErased(TypedDict):
    """An event."""

    data: UserErasedEventOut
    type: Literal["user_erased"]
    at: UnixMs
    id: int


class EventsOut(TypedDict):
    """A page of events, in the order of their numbers."""

    has_more: bool
    items: list[EventOut]
    next_after: int


class ExplainOut(TypedDict):
    """The terms of each count of an unread summary."""

    broadcast_head: int
    broadcasts: dict[str, ChannelTermsOut]
    chats: ChatTermsOut
    counters: dict[str, CounterTermsOut]
    dots: dict[str, DotTermsOut]
    enrolment_head: NotRequired[int]
    feed: FeedTermsOut
    not_in_total: list[str]
    notifications: dict[str, NotificationTermsOut]
    revision: int
    total: int
    user_id: UserId


class FamiliarFollowersOut(TypedDict):
    """The familiar followers of other users, in the order of the request."""

    items: list[FamiliarOut]


class FamiliarOut(TypedDict):
    """The users that a user follows and who follow another user."""

    capped: bool
    count: int
    sample: list[UserId]
    user_id: UserId


class FeedOut(TypedDict):
    """Posts of the users that a user follows."""

    creators: int
    degraded: NotRequired[bool]
    token: NotRequired[str]
    unread: int


class FeedTermsOut(TypedDict):
    """The feed: the sum over the creators whom the user does not mute."""

    changed_at: int
    creators: list[CreatorTermsOut]
    unread: int


class FieldError(TypedDict):
    """An invalid value: its location (an RFC 6901 pointer into the body, or the name of a parameter) and the reason."""

    detail: str
    pointer: str


class FollowRequestOut(TypedDict):
    """A user who has asked to follow another one, or who was asked."""

    since: UnixMs
    user_id: UserId


class FollowUserIn(TypedDict):
    """Follow options."""

    special: NotRequired[bool]
    visibility: NotRequired[Visibility]


class GroupMessageChangeOut(TypedDict):
    """A change of a group message."""

    id: int
    recalled: bool
    seq: int


class GroupMessageChangesOut(TypedDict):
    """Changes of group messages, in order."""

    has_more: bool
    items: list[GroupMessageChangeOut]
    next_after: int


class GroupMessageEventOut(TypedDict):
    """A message of a group."""

    group_id: GroupId
    recalled: bool
    sender_id: NotRequired[UserId]
    seq: int


class GroupMessageOut(TypedDict):
    """A group message."""

    content: NotRequired[str]
    recalled: NotRequired[bool]
    sender_id: NotRequired[UserId]
    sent_at: NotRequired[UnixMs]
    seq: int


class GroupMessagesOut(TypedDict):
    """A page of group messages: in descending order with `before`, otherwise in ascending order."""

    has_more: bool
    has_older: NotRequired[bool]
    head: int
    items: list[GroupMessageOut]
    next_after: int
    next_before: NotRequired[int]


class GroupOut(TypedDict):
    """A group."""

    created_at: UnixMs
    delivery: Delivery
    group_id: GroupId
    head: int
    members: int
    receipts: bool


class GroupSentOut(TypedDict):
    """A sent group message."""

    group_id: GroupId
    revision: int
    sent_at: UnixMs
    seq: int


class GroupSettingsOut(TypedDict):
    """A member's settings of a group."""

    group_id: GroupId
    level: Level
    level_until: NotRequired[UnixMs]
    revision: int


class GroupTermsOut(TypedDict):
    """A group: unread = head − read_seq − messages above it that were recalled, have expired or were read out of order."""

    gone: int
    group_id: GroupId
    head: int
    level: Level
    level_until: NotRequired[UnixMs]
    mentions: int
    read_seq: int
    unread: int
    unread_from: NotRequired[int]


class HealthOut(TypedDict):
    """Liveness."""

    status: str


class InboxOut(TypedDict):
    """A page of inbox items."""

    epoch: str
    has_more: bool
    head: int
    items: list[ItemOut]
    next_after: int


class IncrementBadgeIn(TypedDict):
    """An increment of a badge."""

    by: NotRequired[int]


class IncrementBadgesIn(TypedDict):
    """Increments of many badges of many users: all or nothing."""

    items: Sequence[IncrementBadgesItemIn]


class IncrementBadgesItemIn(TypedDict):
    """An increment in a batch."""

    badge: Name
    by: NotRequired[int]
    user_id: Id


class ItemOut(TypedDict):
    """An inbox item."""

    client_id: NotRequired[ClientId]
    content: NotRequired[str]
    group_id: NotRequired[GroupId]
    group_seq: NotRequired[int]
    own: NotRequired[bool]
    peer_id: NotRequired[UserId]
    recall: NotRequired[int]
    recalled: NotRequired[bool]
    sender_id: NotRequired[UserId]
    sent_at: UnixMs
    seq: int


class JoinMembersIn(TypedDict):
    """The users to add."""

    user_ids: Sequence[Id]


class ListedUserOut(TypedDict):
    """A user in a list of relations."""

    mutual: bool
    secret: NotRequired[bool]
    since: UnixMs
    special: NotRequired[bool]
    user_id: UserId


class LitDotOut(TypedDict):
    """A dot that was lit."""

    dot: Name
    head: int
    lit_at: UnixMs


class MemberEventOut(TypedDict):
    """A member of a group."""

    group_id: GroupId
    member: bool
    user_id: UserId


class MemberOut(TypedDict):
    """A member."""

    joined_at: UnixMs
    ordinal: int
    user_id: UserId


class MembersOut(TypedDict):
    """The added members, in the order of the request."""

    items: list[MemberOut]


class MuteUserIn(TypedDict):
    """How long a mute lasts."""

    until: NotRequired[UnixMs]


class MutedOut(TypedDict):
    """The answer to a mute."""

    blocking: bool
    followed_by: bool
    following: bool
    muting: bool
    mutual: bool
    requested: bool
    secret: bool
    special: bool
    user_id: UserId
    revision: int
    until: NotRequired[UnixMs]


class MutedUserOut(TypedDict):
    """A muted user."""

    since: UnixMs
    until: NotRequired[UnixMs]
    user_id: UserId


class NoFields(TypedDict):
    """An empty body, or `{}`."""


class NoticeOut(TypedDict):
    """A broadcast."""

    body: NotRequired[str]
    data: NotRequired[dict[str, Any]]
    title: str
    channel: Name
    created_at: UnixMs
    expires_at: NotRequired[UnixMs]
    read: NotRequired[bool]
    seq: int


class NotificationCountOut(TypedDict):
    """The unread entries of a type."""

    capped: NotRequired[bool]
    unread: int
    unseen: int


class NotificationEntryOut(TypedDict):
    """An entry of a user's list."""

    actors: list[UserId]
    content: NotRequired[str]
    count: int
    created_at: UnixMs
    data: NotRequired[dict[str, Any]]
    group_key: NotRequired[ClientId]
    id: NotificationId
    notification_id: NotificationId
    read_at: NotRequired[UnixMs]
    seen: bool
    seq: int
    title: NotRequired[str]
    type: Name
    updated_at: UnixMs


class NotificationEventOut(TypedDict):
    """A notification."""

    actor_id: NotRequired[UserId]
    change: NotificationChange
    notification_id: NotificationId
    recipient_count: int
    type: Name


class NotificationOut(TypedDict):
    """A notification, for its sender."""

    actor_id: NotRequired[UserId]
    content: NotRequired[str]
    created_at: UnixMs
    data: NotRequired[dict[str, Any]]
    group_key: NotRequired[ClientId]
    modified_at: UnixMs
    notification_id: NotificationId
    read_count: int
    recipient_count: int
    title: NotRequired[str]
    type: Name


class NotificationTermsOut(TypedDict):
    """A notification type."""

    unread: int
    unseen: int


class OperationAnswerOut(TypedDict):
    """The response that a synchronous write would have returned."""

    body: NotRequired[dict[str, Any]]
    status: int


class OperationOut(TypedDict):
    """An operation."""

    answer: NotRequired[OperationAnswerOut]
    created_at: UnixMs
    finished_at: NotRequired[UnixMs]
    operation_id: OperationId
    problem: NotRequired[ProblemOut]
    status: OperationStatus


class PageOut_BroadcastChannelOut(TypedDict):
    """A page of a list."""

    items: list[BroadcastChannelOut]
    next_cursor: str | None


class PageOut_ChatOut(TypedDict):
    """A page of a list."""

    items: list[ChatOut]
    next_cursor: str | None


class PageOut_DirectOut(TypedDict):
    """A page of a list."""

    items: list[DirectOut]
    next_cursor: str | None


class PageOut_FollowRequestOut(TypedDict):
    """A page of a list."""

    items: list[FollowRequestOut]
    next_cursor: str | None


class PageOut_ListedUserOut(TypedDict):
    """A page of a list."""

    items: list[ListedUserOut]
    next_cursor: str | None


class PageOut_LitDotOut(TypedDict):
    """A page of a list."""

    items: list[LitDotOut]
    next_cursor: str | None


class PageOut_MemberOut(TypedDict):
    """A page of a list."""

    items: list[MemberOut]
    next_cursor: str | None


class PageOut_MutedUserOut(TypedDict):
    """A page of a list."""

    items: list[MutedUserOut]
    next_cursor: str | None


class PageOut_NoticeOut(TypedDict):
    """A page of a list."""

    items: list[NoticeOut]
    next_cursor: str | None


class PageOut_NotificationEntryOut(TypedDict):
    """A page of a list."""

    items: list[NotificationEntryOut]
    next_cursor: str | None


class PageOut_RecipientOut(TypedDict):
    """A page of a list."""

    items: list[RecipientOut]
    next_cursor: str | None


class PageOut_UserGroupOut(TypedDict):
    """A page of a list."""

    items: list[UserGroupOut]
    next_cursor: str | None


class PairIn(TypedDict):
    """A pair of users."""

    target_id: Id
    user_id: Id


class PairOut(TypedDict):
    """The relation between two users."""

    blocking: bool
    followed_by: bool
    following: bool
    muting: bool
    mutual: bool
    requested: bool
    secret: bool
    special: bool
    target_id: UserId
    user_id: UserId


class PatchSettingsIn(TypedDict):
    """Settings to change."""

    approve_follows: NotRequired[bool]
    lists: NotRequired[ListsOut]
    not_in_total: NotRequired[Sequence[TotalPart]]
    share_receipts: NotRequired[bool]


class PostCountOut(TypedDict):
    """The number of posts of a creator."""

    head: int
    posts: int


class PostEventOut(TypedDict):
    """A post of a creator."""

    deleted: bool
    post_id: ClientId
    user_id: UserId


class PostOut(TypedDict):
    """A post after a write."""

    head: int
    post_id: ClientId
    posts: int


class PostsOut(TypedDict):
    """The registered posts."""

    items: list[UserPostOut]


class ProblemOut(TypedDict):
    """A problem (RFC 9457), media type `application/problem+json`."""

    code: Code
    detail: str
    earliest_seq: NotRequired[int]
    errors: NotRequired[list[FieldError]]
    status: int
    title: str
    type: str


class PutCursorIn(TypedDict):
    """How far a device has read."""

    seq: int


class PutDeviceIn(TypedDict):
    """What a device wants."""

    push: bool


class PutDirectSettingsIn(TypedDict):
    """Settings of a direct chat."""

    level: DirectLevel
    until: NotRequired[UnixMs]


class PutGroupIn(TypedDict):
    """Settings of a group."""

    delivery: NotRequired[Delivery]
    receipts: NotRequired[bool]


class PutGroupSettingsIn(TypedDict):
    """A member's settings of a group."""

    level: Level
    until: NotRequired[UnixMs]


class PutPostIn(TypedDict):
    """The body of a post, which has no fields."""


class PutPostsIn(TypedDict):
    """Posts of many creators: all or nothing."""

    items: Sequence[PutPostsItemIn]


class PutPostsItemIn(TypedDict):
    """A post in a batch."""

    post_id: ClientId
    user_id: Id


class PutViewItemIn(TypedDict):
    """An item of a view."""

    actor_id: NotRequired[Id]


class PutViewItemsIn(TypedDict):
    """Items of many views: all or nothing."""

    items: Sequence[PutViewItemsItemIn]


class PutViewItemsItemIn(TypedDict):
    """An item in a batch."""

    actor_id: NotRequired[Id]
    item_id: ClientId
    view: Name
    view_id: ClientId


class QueryBadgesIn(TypedDict):
    """The users to query."""

    cap: NotRequired[int]
    include: NotRequired[Sequence[KindName]]
    user_ids: Sequence[Id]


class QueryBadgesOut(TypedDict):
    """The unread summaries, in the order of the request."""

    items: list[UnreadSummaryOut]


class QueryRelationsIn(TypedDict):
    """The pairs to query."""

    pairs: Sequence[PairIn]


class QueryRelationsOut(TypedDict):
    """The relations of the pairs, in the order of the request."""

    items: list[PairOut]


class ReadBroadcastsIn(TypedDict):
    """How far a user has read a channel."""

    up_to: NotRequired[int]


class ReadChatsIn(TypedDict):
    """How far the user has read chats."""

    up_to: NotRequired[ReadChatsUpToIn]


class ReadChatsUpToIn(TypedDict):
    """Heads that the user saw, by group and by the other user of a direct chat."""

    directs: NotRequired[Mapping[str, ShownHead]]
    groups: NotRequired[Mapping[str, ShownHead]]


class ReadDirectIn(TypedDict):
    """How far a user has read a direct chat."""

    up_to: NotRequired[int]


class ReadDirectOut(TypedDict):
    """A direct chat after a write."""

    last_seq: int
    peer_id: UserId
    read_seq: int
    revision: int
    unread: int


class ReadGroupIn(TypedDict):
    """How far a user has read a group."""

    up_to: NotRequired[int]


class ReadGroupOut(TypedDict):
    """How far a user has read a group."""

    group_id: GroupId
    head: int
    read_seq: int
    revision: int
    unread: int


class ReadNotificationOut(TypedDict):
    """An entry of a user's list after a write."""

    id: NotificationId
    read_at: NotRequired[UnixMs]
    revision: int
    unread: int
    unseen: int


class ReadNotificationsIn(TypedDict):
    """The entries to mark: by id, by type, or all."""

    all: NotRequired[bool]
    ids: NotRequired[Sequence[Id]]
    type: NotRequired[Name]
    up_to_seq: NotRequired[int]


class ReadNotificationsOut(TypedDict):
    """The result of marking entries."""

    changed: int
    notifications: dict[str, NotificationCountOut]
    revision: int


class ReadyOut(TypedDict):
    """Readiness."""

    cache: PartState
    database: PartState
    degraded: bool
    node: PartState
    ready: bool
    replica: NotRequired[PartState]


class ReceiptBitmapsOutBits(TypedDict):
    """Receipts of a message in a compact form, over the ordinals of the members."""

    encoding: Literal["bits"]
    max_ordinal: int
    quit_bits: str
    read_bits: str


class ReceiptBitmapsOutOrdinals(TypedDict):
    """Receipts of a message in a compact form, over the ordinals of the members."""

    encoding: Literal["ordinals"]
    max_ordinal: int
    read: list[int]
    unread: list[int]


class ReceiptsOut(TypedDict):
    """Receipt counts of a message."""

    max_ordinal: int
    read_count: int
    recipients: int
    sender_id: UserId
    seq: int
    unread_count: int


class RecipientOut(TypedDict):
    """A recipient of a message."""

    left: bool
    ordinal: int
    user_id: NotRequired[UserId]


class RelationCountsOut(TypedDict):
    """The lengths of a user's lists of relations."""

    blocked: NotRequired[int]
    followers: int
    following: int
    mutuals: int
    requests: NotRequired[int]
    requests_sent: NotRequired[int]
    secret: NotRequired[int]
    special: NotRequired[int]


class RelationEventOut(TypedDict):
    """The relation of one user to another."""

    blocking: bool
    following: bool
    requested: bool
    secret: bool
    special: bool
    target_id: UserId
    user_id: UserId


class RelationOut(TypedDict):
    """The relation of another user to a user."""

    blocking: bool
    followed_by: bool
    following: bool
    muting: bool
    mutual: bool
    requested: bool
    secret: bool
    special: bool
    user_id: UserId


class RelationsOut(TypedDict):
    """The relations of other users to a user, in the order of the request."""

    items: list[RelationOut]


class ResetBadgeIn(TypedDict):
    """How far a user has read a badge."""

    up_to: NotRequired[int]


class ResetBadgesIn(TypedDict):
    """How far a user has read several badges."""

    up_to: NotRequired[Mapping[str, ShownHead]]


class ResetFeedIn(TypedDict):
    """What the user has seen: all current posts, or those that a token names."""

    up_to: NotRequired[str]


class ResetFeedOut(TypedDict):
    """The feed after a reset."""

    creators: int
    revision: int
    unread: int


class RetractBadgeIn(TypedDict):
    """The increment to retract: one position, or the newest unread ones."""

    at: NotRequired[int]
    by: NotRequired[int]


class RetractBadgesIn(TypedDict):
    """Retractions of many badges of many users: all or nothing."""

    items: Sequence[RetractBadgesItemIn]


class RetractBadgesItemIn(TypedDict):
    """A retraction in a batch: one position, or the newest unread ones."""

    at: NotRequired[int]
    badge: Name
    by: NotRequired[int]
    user_id: Id


class ScreenfulItemOut(TypedDict):
    """Receipt counts of one message."""

    read_count: int
    seq: int
    unread_count: int


class ScreenfulOut(TypedDict):
    """Receipt counts of several messages, in order, without recalled messages."""

    items: list[ScreenfulItemOut]


class SeenNotificationsIn(TypedDict):
    """How far the user has seen the list."""

    up_to_seq: NotRequired[int]


class SeenNotificationsOut(TypedDict):
    """The result of having seen the list."""

    revision: int
    unseen: int


class SendBroadcastIn(TypedDict):
    """A broadcast to all users."""

    body: NotRequired[str]
    data: NotRequired[Mapping[str, Any]]
    expires_at: NotRequired[UnixMs]
    title: str


class SendDirectIn(TypedDict):
    """A direct message."""

    client_id: ClientId
    content: str
    sender_id: NotRequired[Id]


class SendGroupMessageIn(TypedDict):
    """A group message."""

    client_id: ClientId
    content: str
    mention_all: NotRequired[bool]
    mentions: NotRequired[Sequence[Id]]
    sender_id: NotRequired[Id]


class SendNotificationIn(TypedDict):
    """A notification and its recipients."""

    actor_id: NotRequired[Id]
    content: NotRequired[str]
    data: NotRequired[Mapping[str, Any]]
    group_key: NotRequired[ClientId]
    recipients: Sequence[Id]
    title: NotRequired[str]
    type: Name


class SentOut(TypedDict):
    """A sent direct message."""

    own_seq: NotRequired[int]
    revision: int
    sent_at: UnixMs
    seq: int


class SettingsOut(TypedDict):
    """A user's settings."""

    approve_follows: bool
    lists: ListsOut
    not_in_total: list[TotalPart]
    revision: int
    share_receipts: bool


UnreadDirectIn = TypedDict("UnreadDirectIn", {"from": "int"})


class UnreadEventOut(TypedDict):
    """The numbers of a user with a push device may have changed."""

    revision: int
    user_id: UserId


UnreadGroupIn = TypedDict("UnreadGroupIn", {"from": "int"})


class UnreadOut(TypedDict):
    """An unread count."""

    capped: NotRequired[bool]
    unread: int


class UnreadSummaryOut(TypedDict):
    """The unread summary of a user."""

    broadcasts: NotRequired[dict[str, CounterOut]]
    capped: NotRequired[bool]
    chats: NotRequired[ChatsOut]
    counters: NotRequired[dict[str, CounterOut]]
    degraded: bool
    dots: NotRequired[dict[str, DotOut]]
    epoch: str
    feed: NotRequired[UnreadOut]
    missing: NotRequired[list[str]]
    notifications: NotRequired[dict[str, NotificationCountOut]]
    revision: NotRequired[int]
    shared_revision: NotRequired[int]
    stale: NotRequired[list[str]]
    total: NotRequired[int]
    user_id: UserId
    views: NotRequired[dict[str, ViewOut]]


class UserBadgeOut(TypedDict):
    """A badge in a batch."""

    badge: Name
    head: int
    revision: int
    unread: int
    user_id: UserId


class UserBadgesOut(TypedDict):
    """The results of a batch."""

    items: list[UserBadgeOut]


class UserDotOut(TypedDict):
    """A dot of a user."""

    dot: Name
    head: int
    lit: bool
    revision: int


class UserErasedEventOut(TypedDict):
    """A user was erased."""

    user_id: UserId


class UserGroupOut(TypedDict):
    """A group of a user."""

    first_unread_seq: NotRequired[int]
    group_id: GroupId
    head: int
    last_access_at: UnixMs
    level: Level
    level_until: NotRequired[UnixMs]
    mentions: int
    read_seq: int
    unread: int


class UserPostOut(TypedDict):
    """A post in a batch."""

    head: int
    post_id: ClientId
    posts: int
    user_id: UserId


class UserViewOut(TypedDict):
    """The unread count of a view for a user."""

    head: int
    last_access_at: NotRequired[UnixMs]
    revision: int
    unread: int
    view: Name
    view_id: ClientId


class ViewItemOut(TypedDict):
    """An item after a write."""

    head: int
    item_id: ClientId
    view: Name
    view_id: ClientId


class ViewItemsOut(TypedDict):
    """The added items."""

    items: list[ViewItemOut]


class ViewOut(TypedDict):
    """The unread count of a view."""

    capped: NotRequired[bool]
    head: int
    last_access_at: NotRequired[UnixMs]
    unread: int


class WholeListOut(TypedDict):
    """A complete list of user ids."""

    count: int
    degraded: NotRequired[bool]
    ids: list[UserId]


Event: TypeAlias = (
    EventRelation
    | EventBroadcast
    | EventPost
    | EventMember
    | EventGroupMessage
    | EventDirectMessage
    | EventNotification
    | EventUnread
    | EventUserErased
)

EventOut: TypeAlias = (
    EventOutRelation
    | EventOutBroadcast
    | EventOutPost
    | EventOutMember
    | EventOutGroupMessage
    | EventOutDirectMessage
    | EventOutNotification
    | EventOutUnread
    | EventOutUserErased
)

ReceiptBitmapsOut: TypeAlias = ReceiptBitmapsOutBits | ReceiptBitmapsOutOrdinals

ReceiptsAnswer: TypeAlias = ReceiptsOut | PageOut_RecipientOut | ReceiptBitmapsOut
