//! What events say. They name users, groups and what was sent, and quote none of it: a reader that
//! wants to show it asks for it, and gets what is there by then.

use serde::Serialize;
use utoipa::ToSchema;

use crate::base::ids::{ClientId, GroupId, Name, NotificationId, UserId};

/// A change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Event {
    /// The relation of one user to another changed.
    Relation(RelationEventOut),
    /// A broadcast was sent or withdrawn, or its channel was deleted.
    Broadcast(BroadcastEventOut),
    /// A post was created or deleted.
    Post(PostEventOut),
    /// A user joined or left a group.
    Member(MemberEventOut),
    /// A message of a group was sent or recalled.
    GroupMessage(GroupMessageEventOut),
    /// A direct message was sent or recalled.
    DirectMessage(DirectMessageEventOut),
    /// A notification was sent, edited or withdrawn.
    Notification(NotificationEventOut),
    /// The numbers of a user with a push device may have changed.
    Unread(UnreadEventOut),
    /// A user was erased.
    UserErased(UserErasedEventOut),
}

/// The relation of one user to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RelationEventOut {
    /// The user.
    pub user_id: UserId,
    /// The other user.
    pub target_id: UserId,
    /// Whether the user follows the other user.
    pub following: bool,
    /// Whether the user has asked to follow the other user, who has not answered yet.
    pub requested: bool,
    /// Whether the follow, or the request, is secret.
    pub secret: bool,
    /// Whether the other user is special to the user.
    pub special: bool,
    /// Whether the user blocks the other user.
    pub blocking: bool,
}

/// A broadcast of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct BroadcastEventOut {
    /// The channel.
    pub channel: Name,
    /// The position in the channel.
    #[schema(minimum = 1, example = 57)]
    pub seq: i64,
    /// Whether the broadcast was withdrawn.
    pub withdrawn: bool,
    /// True if the channel was deleted, with every broadcast up to `seq`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub channel_deleted: bool,
}

/// A post of a creator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PostEventOut {
    /// The creator.
    pub user_id: UserId,
    /// The post.
    pub post_id: ClientId,
    /// Whether the post was deleted.
    pub deleted: bool,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MemberEventOut {
    /// The group.
    pub group_id: GroupId,
    /// The user.
    pub user_id: UserId,
    /// Whether the user is a member now.
    pub member: bool,
}

/// A message of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupMessageEventOut {
    /// The group.
    pub group_id: GroupId,
    /// The number of the message in the group.
    #[schema(minimum = 1, example = 57)]
    pub seq: i64,
    /// The sender; omitted if that user was erased, and its messages recalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sender_id: Option<UserId>,
    /// Whether the message was recalled.
    pub recalled: bool,
}

/// A direct message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectMessageEventOut {
    /// The sender.
    pub sender_id: UserId,
    /// The receiver.
    pub receiver_id: UserId,
    /// The number of the message in the receiver's inbox; omitted if a recalled message is not known
    /// there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 57)]
    pub seq: Option<i64>,
    /// The number of the message in the sender's inbox.
    #[schema(minimum = 1, example = 31)]
    pub own_seq: i64,
    /// Whether the message was recalled.
    pub recalled: bool,
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NotificationEventOut {
    /// The notification.
    pub notification_id: NotificationId,
    /// The type of the notification.
    pub r#type: Name,
    /// The user whose act it tells of; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub actor_id: Option<UserId>,
    /// The number of recipients when it was sent, minus the users erased since.
    #[schema(minimum = 0, example = 1200)]
    pub recipient_count: i64,
    /// What happened to it.
    pub change: NotificationChange,
}

/// What happened to a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotificationChange {
    /// It was sent.
    Sent,
    /// It was edited.
    Edited,
    /// It was withdrawn.
    Withdrawn,
}

/// The numbers of a user with a push device may have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UnreadEventOut {
    /// The user.
    pub user_id: UserId,
    /// The revision of the user's own rows by then. It is that of an earlier event where the change
    /// was none of the user's own, such as a broadcast.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// A user was erased. There are no other events about the end of the user's relations and memberships.
/// Earlier events do not name the user any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserErasedEventOut {
    /// The user.
    pub user_id: UserId,
}
