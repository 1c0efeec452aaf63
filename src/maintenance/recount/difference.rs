//! What a recount finds.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::engine::marks::{Kind, StreamKey};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// How many the user follows.
    Following,
    /// How many follow the user.
    Followers,
    /// How many of them go both ways.
    Mutuals,
    /// How many of those that the user follows are secret.
    Secret,
    /// How many of them are special.
    Special,
    /// How many the user blocks.
    Blocked,
    /// How many have asked to follow the user.
    Requests,
    /// How many the user has asked to follow.
    SentRequests,
    /// A follower is missing in the user's list.
    Missing,
    /// One is there who does not follow.
    Extra,
    /// A request to follow that another has sent is missing in the user's list.
    MissingRequest,
    /// One is there that was not sent.
    ExtraRequest,
    /// How many messages the other side of a direct chat ever sent.
    DirectHead,
    /// How many of them the user has read.
    DirectMark,
    /// How many of the others were recalled and are kept.
    DirectRecalled,
    /// How many direct messages the user has not read.
    DirectUnread,
    /// From how many others those are.
    DirectChats,
    /// The last row of the user's inbox.
    InboxSeq,
    /// A message of a group is missing in the user's inbox.
    InboxMessage,
    /// That one was recalled is missing there.
    InboxRecall,
    /// How many notifications of a type the user has not read.
    NotificationUnread,
    /// How many of these the user has seen.
    NotificationSeen,
    /// How many notifications an unread entry with a group key holds.
    NotificationsGrouped,
    /// The number of the last notification that the user got.
    NotificationSeq,
    /// How many groups the user is in.
    Groups,
    /// How many members a group has.
    GroupMembers,
    /// How many ordinals a group has given.
    GroupOrdinals,
    /// The id of the last change of a message of a group, below one that is kept.
    GroupChanges,
    /// How many things ever happened in a shared stream of this kind.
    Head(Kind),
    /// How many positions of such a stream, above its floor, are taken back.
    Retracted(Kind),
    /// How many positions of a group mention all.
    MentionAll,
    /// An unread message that names a member.
    Mention,
    /// How many posts of a creator are gone.
    PostsGone,
    /// How far a user has read a counter, channel, dot or view, beyond its head.
    Mark(Kind),
    /// How far a member has read a group, beyond its head.
    ReadSeq,
    /// From where on a follow counts, beyond the creator's head.
    FollowMark,
    /// A snapshot of a feed that cannot be read.
    FeedSnapshot,
}

impl What {
    /// Of a number of a shared stream: the stream's kind.
    #[must_use]
    pub fn stream(self) -> Option<Kind> {
        match self {
            Self::Head(kind) | Self::Retracted(kind) => Some(kind),
            Self::PostsGone => Some(Kind::Post),
            Self::MentionAll => Some(Kind::Group),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Following => "following",
            Self::Followers => "followers",
            Self::Mutuals => "mutuals",
            Self::Secret => "secret",
            Self::Special => "special",
            Self::Blocked => "blocked",
            Self::Requests => "requests",
            Self::SentRequests => "requests_sent",
            Self::Missing | Self::Extra => "follower",
            Self::MissingRequest | Self::ExtraRequest => "follow request of",
            Self::DirectHead => "direct head",
            Self::DirectMark => "direct mark",
            Self::DirectRecalled => "direct recalled",
            Self::DirectUnread => "direct_unread",
            Self::DirectChats => "direct_chats",
            Self::InboxSeq => "inbox_seq",
            Self::InboxMessage => "inbox row of group",
            Self::InboxRecall => "inbox recall of group",
            Self::NotificationUnread => "unread notifications",
            Self::NotificationSeen => "seen notifications",
            Self::NotificationsGrouped => "notifications in entry",
            Self::NotificationSeq => "notification_seq",
            Self::Groups => "groups",
            Self::GroupMembers => "members",
            Self::GroupOrdinals => "ordinals",
            Self::GroupChanges => "changes",
            Self::Head(Kind::Post) => "posts head",
            Self::Retracted(Kind::Post) => "posts retracted",
            Self::PostsGone => "posts gone",
            Self::MentionAll => "mention_all",
            Self::Mention => "mention in group",
            Self::Head(_) => "head",
            Self::Retracted(_) => "retracted",
            Self::Mark(Kind::Broadcast) => "mark of channel",
            Self::Mark(Kind::Dot) => "mark of dot",
            Self::Mark(Kind::View) => "mark of view",
            Self::Mark(_) => "mark of badge",
            Self::ReadSeq => "read_seq of group",
            Self::FollowMark => "mark of creator",
            Self::FeedSnapshot => "unreadable feed snapshot",
        }
    }
}

/// A number, or a row, that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Whose; of a number of a group, which group; 0 where it is nobody's.
    pub user: i64,
    /// Which number.
    pub what: What,
    /// For a row: the follower, or who has asked. For a direct chat: the other side. For a row of an inbox, and for a
    /// mention: the message. For an entry of notifications: its id.
    pub other: Option<i64>,
    /// For notifications: their type. For a row of an inbox, and for a mention: the group. For a view or a channel:
    /// which one.
    pub name: Option<Arc<str>>,
    /// What is stored.
    pub stored: i64,
    /// What was counted.
    pub counted: i64,
}

impl Difference {
    /// Whether it is of the same number, and by as much: what is stored and counted may both have gone on.
    pub(super) fn is_by_as_much(&self, other: &Self) -> bool {
        let by = |of: &Self| of.counted - of.stored;
        (self.user, self.what, self.other, &self.name, by(self)) == (other.user, other.what, other.other, &other.name, by(other))
    }

    /// About one number of a user, or of a group.
    #[must_use]
    pub fn new(user: i64, what: What, stored: i64, counted: i64) -> Self {
        Self { user, what, other: None, name: None, stored, counted }
    }

    /// The shared stream that it is about, if it is about one.
    #[must_use]
    pub fn stream(&self) -> Option<StreamKey> {
        let kind = self.what.stream()?;
        Some(StreamKey { owner: self.user, kind, name: self.name.clone().unwrap_or_default() })
    }

    /// What it would add to the number.
    pub(super) fn missing(&self) -> i64 {
        self.counted - self.stored
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, name) = (self.what.word(), self.name.as_deref().unwrap_or_default());
        match (self.what.stream(), self.what) {
            (Some(Kind::View), _) => write!(f, "view {name} {word}")?,
            (Some(Kind::Broadcast), _) => write!(f, "channel {name} {word}")?,
            (Some(Kind::BroadcastState), _) => write!(f, "broadcast_state {word}")?,
            (Some(Kind::Group), _) | (_, What::GroupMembers | What::GroupOrdinals | What::GroupChanges) => {
                write!(f, "group {} {word}", self.user)?;
            }
            (
                _,
                What::NotificationUnread | What::NotificationSeen | What::InboxMessage | What::InboxRecall | What::Mention | What::Mark(_),
            ) => write!(f, "user {} {word} {name}", self.user)?,
            _ => write!(f, "user {} {word}", self.user)?,
        }
        if let Some(other) = self.other {
            write!(f, " {other}")?;
        }
        write!(f, ": stored {}, counted {}", self.stored, self.counted)
    }
}

/// Whose numbers differ, in order and each once.
pub(super) type Owners = Vec<i64>;

pub(super) fn owners(found: &[Difference]) -> Owners {
    let owners: BTreeSet<_> = found.iter().map(|found| found.user).collect();
    owners.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_the_same_by_what_is_missing_of_the_same_number() {
        let found = |stored, counted| Difference::new(1, What::Following, stored, counted);
        // Both have gone on.
        assert!(found(3, 5).is_by_as_much(&found(7, 9)));
        assert!(!found(3, 5).is_by_as_much(&found(5, 5)) && !found(3, 5).is_by_as_much(&found(5, 3)));
        let other = Difference { other: Some(2), ..found(3, 5) };
        let named = Difference { name: Some("chat".into()), ..found(3, 5) };
        for another in [Difference { user: 2, ..found(3, 5) }, Difference { what: What::Mutuals, ..found(3, 5) }, other, named] {
            assert!(!found(3, 5).is_by_as_much(&another), "{another:?}");
        }
    }
}
