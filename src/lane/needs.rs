//! Which rows the commands of a batch need: said before any is looked at, so that they can be locked in one order and loaded together.

use std::collections::{BTreeMap, BTreeSet};

use crate::broadcasts::NoticeKey;
use crate::groups;
use crate::ids::{ClientId, GroupId, Name, UserId};
use crate::inbox;
use crate::marks::{Kind, MarkKey, StreamKey};
use crate::notifications;
use crate::relations::Pair;
use crate::views;

/// Which rows the commands of a batch need.
#[derive(Debug, Default)]
pub struct Needs {
    pub(super) users: BTreeSet<UserId>,
    pub(super) marks: BTreeSet<MarkKey>,
    pub(super) all_marks: BTreeSet<(UserId, Kind)>,
    /// Both directions of each pair.
    pub(super) follows: BTreeSet<Pair>,
    /// Pairs that are only looked at.
    pub(super) seen_pairs: BTreeSet<Pair>,
    /// Users whose own relations may change.
    pub(super) related: BTreeSet<UserId>,
    pub(super) stripes: BTreeSet<i64>,
    /// Stripes of pairs that are only looked at.
    pub(super) seen_stripes: BTreeSet<i64>,
    /// Heads that may be changed.
    pub(super) heads: BTreeSet<StreamKey>,
    pub(super) notices: BTreeSet<NoticeKey>,
    /// Heads that are only looked at.
    pub(super) seen_heads: BTreeSet<StreamKey>,
    /// Users who may be enrolled.
    pub(super) enrolling: BTreeSet<UserId>,
    pub(super) posts: BTreeSet<(UserId, ClientId)>,
    /// Users of whom the snapshot of the feed is needed.
    pub(super) snapshots: BTreeSet<UserId>,
    /// Notifications.
    pub notifications: notifications::store::Needs,
    /// Visits of views, and how many views are remembered of a user; with it the marks.
    pub visits: BTreeMap<MarkKey, u32>,
    /// Things in views; with it the heads of the views.
    pub view_items: views::store::Needs,
    /// Groups, with their members and messages; heads and users' own rows are asked for beside them.
    pub groups: groups::store::Needs,
    /// Groups whose fan-out goes on.
    pub deliveries: BTreeSet<GroupId>,
    /// Inboxes and direct chats.
    pub inbox: inbox::Needs,
    /// Users of whom all devices are needed; with it the users' own rows, whose locks guard them.
    pub devices: inbox::devices::Needs,
}

impl Needs {
    /// A user's own row.
    pub fn user(&mut self, user: UserId) {
        self.users.insert(user);
    }

    /// One mark, and with it the user's own row.
    pub fn mark(&mut self, user: UserId, kind: Kind, name: &Name) {
        self.mark_at(MarkKey::new(user, kind, name));
    }

    /// One mark by its key, and with it the user's own row.
    pub fn mark_at(&mut self, key: MarkKey) {
        self.users.insert(key.user);
        self.marks.insert(key);
    }

    /// All marks of one kind of a user.
    pub fn all_marks(&mut self, user: UserId, kind: Kind) {
        self.users.insert(user);
        self.all_marks.insert((user, kind));
    }

    /// What two users are to each other, to change what the first is to the second; with it the first one's own row and counts, and the lock of the pair.
    pub fn follow(&mut self, pair: Pair) {
        self.users.insert(pair.follower);
        self.related.insert(pair.follower);
        self.follows.extend([pair, pair.reversed()]);
        self.stripes.insert(pair.stripe());
    }

    /// The same to change both directions.
    pub fn block(&mut self, pair: Pair) {
        self.follow(pair);
        self.follow(pair.reversed());
    }

    /// What two users are to each other, only to look at it: nobody changes it before this transaction ends, so that what is done because neither blocks the
    /// other stands before the block.
    pub fn seen_block(&mut self, pair: Pair) {
        self.seen_pairs.extend([pair, pair.reversed()]);
        self.seen_stripes.insert(pair.stripe());
    }

    /// The lock of a pair, and which writes of it are accepted and not done.
    pub fn operations(&mut self, pair: Pair) {
        self.seen_pairs.insert(pair.unordered());
        self.stripes.insert(pair.stripe());
    }

    /// The head of a shared stream, to change it: locked until the commit, so that its numbers are in the order of commits.
    pub fn head(&mut self, key: StreamKey) {
        self.heads.insert(key);
    }

    /// The head of a shared stream, only to look at it.
    pub fn seen_head(&mut self, key: StreamKey) {
        self.seen_heads.insert(key);
    }

    /// A notice, to change it.
    pub fn notice(&mut self, key: NoticeKey) {
        self.notices.insert(key);
    }

    /// A user's own row and what an enrolment looks at.
    pub fn enrolment(&mut self, user: UserId) {
        self.users.insert(user);
        self.enrolling.insert(user);
        self.seen_heads.insert(StreamKey::board());
    }

    /// A post, and with it the head of its creator's stream, whose lock guards all posts of the creator.
    pub fn post(&mut self, creator: UserId, post: ClientId) {
        self.heads.insert(StreamKey::posts(creator));
        self.posts.insert((creator, post));
    }

    /// The snapshot of a user's feed, and with it the user's own row, whose lock guards it.
    pub fn snapshot(&mut self, user: UserId) {
        self.users.insert(user);
        self.snapshots.insert(user);
    }

    /// The users whose own rows may change: those whose cache entries must be touched.
    #[must_use]
    pub fn users(&self) -> Vec<UserId> {
        self.users.iter().copied().collect()
    }
}
