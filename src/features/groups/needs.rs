//! Which rows of groups the commands of a batch need, and what they find of those that are already
//! there.

use std::collections::BTreeSet;

use super::import::store as logs;
use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, GroupId, UserId};

/// A message by its sender's own id.
pub(super) type ClientKey = (GroupId, UserId, ClientId);

/// Which of these rows a batch needs. Users' own rows and heads of groups are asked for beside it.
#[derive(Debug, Default)]
pub struct GroupNeeds {
    /// Groups.
    pub groups: BTreeSet<GroupId>,
    /// The latest memberships.
    pub members: BTreeSet<(UserId, GroupId)>,
    /// All memberships, from the first on, of these in these groups.
    pub spans: BTreeSet<(UserId, GroupId)>,
    /// Messages by their senders' own ids.
    pub clients: BTreeSet<ClientKey>,
    /// Messages by their numbers.
    pub messages: BTreeSet<(GroupId, i64)>,
    /// What is unread again: what the user sent from this message on, and what mentions the user.
    pub again: BTreeSet<(GroupId, UserId, i64)>,
    /// Groups whose messages go: those stay that are yet to be put into inboxes.
    pub jobs: BTreeSet<GroupId>,
    /// How far logs are taken.
    pub logs: logs::LogNeeds,
}

/// A message that was sent before, under its sender's own id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub seq: i64,
    pub at: UnixMs,
    /// Whether it was recalled since.
    pub recalled: bool,
}

/// Something that is to be put into the inboxes of a group's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryJob {
    /// About which message.
    pub seq: i64,
    /// Whether it says that the message was recalled.
    pub recall: bool,
}
